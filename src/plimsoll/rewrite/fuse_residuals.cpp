#include "plimsoll/rewrite/fuse_residuals.h"

#include <algorithm>
#include <string_view>

#include "plimsoll/ops/elementwise/fused_relu.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

constexpr std::size_t kMostTerms = 4;  // of add_n

// "encoder.0.attention" for "encoder.0.attention.query".
std::string_view parent_of(std::string_view layer) {
  return layer.substr(0, std::min(layer.rfind('.'), layer.size()));
}

class ResidualFuser {
 public:
  explicit ResidualFuser(const ir::Graph& graph) : edit_(graph) {}

  Result<ir::Graph> run() {
    for (std::size_t n = 0; n < edit_.original_nodes(); ++n) {
      const NodeId id(n);
      const ir::Node node = edit_.graph().node(id);
      if (node.op == "add_relu") PLIMSOLL_RETURN_IF_ERROR(fuse_norm(id, node));
      if (node.op == "relu_grad") PLIMSOLL_RETURN_IF_ERROR(fuse_sum(id, node));
      if (node.op != "add") continue;
      PLIMSOLL_TRY(bool fused, fuse_dropout(id, node));
      if (fused) continue;
      PLIMSOLL_TRY(fused, fuse_norm_gradient(id, node));
      if (!fused) PLIMSOLL_RETURN_IF_ERROR(fuse_terms(id, node));
    }
    return edit_.finish();
  }

 private:
  // Whether everybody who reads it stands behind this node.
  bool is_read_behind(ValueId value, NodeId node) const {
    return std::ranges::all_of(edit_.readers(value), [&](NodeId reader) {
      return reader.index() > node.index() && reader.index() < edit_.original_nodes();
    });
  }

  // The norm that makes this value for the sum alone; null when there is none.
  const ir::Node* norm_for(ValueId value, NodeId sum) const {
    const ir::Node* norm = edit_.producer(value);
    if (norm == nullptr || norm->op != "batch_norm" || norm->outputs[0] != value ||
        ops::has_relu(ops::attributes_of(*norm)) || !edit_.has_one_reader(value))
      return nullptr;
    for (std::size_t i = 1; i < norm->outputs.size(); ++i) {
      if (edit_.is_output(norm->outputs[i]) || !is_read_behind(norm->outputs[i], sum))
        return nullptr;
    }
    return norm;
  }

  Status fuse_norm(NodeId id, const ir::Node& sum) {
    if (sum.inputs[0] == sum.inputs[1]) return {};
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ir::Node* found = norm_for(sum.inputs[side], id);
      if (found == nullptr) continue;
      const ir::Node norm = *found;
      ir::Attributes attributes;
      attributes.set("epsilon", ops::attributes_of(norm).real("epsilon"));
      PLIMSOLL_TRY(
          const std::vector<ValueId> made,
          edit_.insert(id, "batch_norm_add_relu",
                       {norm.inputs[0], norm.inputs[1], norm.inputs[2], sum.inputs[1 - side]},
                       std::move(attributes)));
      edit_.replace(sum.outputs[0], made[0]);
      edit_.replace(norm.outputs[1], made[1]);
      edit_.replace(norm.outputs[2], made[2]);
      return {};
    }
    return {};
  }

  Status fuse_sum(NodeId id, const ir::Node& slope) {
    const ir::Node* found = edit_.producer(slope.inputs[0]);
    if (found == nullptr || found->op != "add" || !edit_.has_one_reader(slope.inputs[0])) return {};
    const ir::Node sum = *found;
    for (const ValueId input : sum.inputs) {
      if (edit_.graph().value(input).type != edit_.graph().value(slope.inputs[0]).type) return {};
    }
    PLIMSOLL_TRY(
        const std::vector<ValueId> made,
        edit_.insert(id, "add_relu_grad", {sum.inputs[0], sum.inputs[1], slope.inputs[1]}));
    edit_.replace(slope.outputs[0], made[0]);
    return {};
  }

  Result<bool> fuse_dropout(NodeId id, const ir::Node& sum) {
    const ir::TensorType type = edit_.graph().value(sum.outputs[0]).type;
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
      const ir::Node* found = edit_.producer(sum.inputs[side]);
      if (found == nullptr || found->op != "dropout" || !edit_.has_one_reader(sum.inputs[side]) ||
          sum.inputs[0] == sum.inputs[1])
        continue;
      const ir::Node dropout = *found;
      const ValueId other = sum.inputs[1 - side];
      if (edit_.graph().value(other).type != type ||
          edit_.graph().value(dropout.inputs[0]).type != type)
        continue;
      PLIMSOLL_TRY(const std::vector<ValueId> made,
                   edit_.insert(id, "add_dropout", {other, dropout.inputs[0], dropout.inputs[1]},
                                dropout.attributes));
      edit_.replace(sum.outputs[0], made[0]);
      return true;
    }
    return false;
  }

  Result<bool> fuse_norm_gradient(NodeId id, const ir::Node& sum) {
    if (sum.inputs[0] == sum.inputs[1]) return false;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const ir::Node* found = edit_.producer(sum.inputs[side]);
      if (found == nullptr || found->op != "layer_norm_grad" ||
          found->outputs[0] != sum.inputs[side] || !edit_.has_one_reader(sum.inputs[side]))
        continue;
      const ir::Node norm = *found;
      const ValueId other = sum.inputs[1 - side];
      const bool moves = std::ranges::all_of(norm.outputs, [&](ValueId made) {
        return !edit_.is_output(made) && (made == norm.outputs[0] || is_read_behind(made, id));
      });
      if (!moves || edit_.graph().value(other).type != edit_.graph().value(sum.inputs[side]).type)
        continue;
      std::vector<ValueId> inputs = norm.inputs;
      inputs.push_back(other);
      PLIMSOLL_TRY(const std::vector<ValueId> made,
                   edit_.insert(id, "layer_norm_grad_add", std::move(inputs), norm.attributes));
      edit_.replace(sum.outputs[0], made[0]);
      for (std::size_t i = 1; i < made.size(); ++i) edit_.replace(norm.outputs[i], made[i]);
      return true;
    }
    return false;
  }

  // Only what one place of the model adds up: terms of another layer would wait for it.
  Status fuse_terms(NodeId id, const ir::Node& sum) {
    const ir::Node* before = edit_.producer(sum.inputs[0]);
    if (before == nullptr || (before->op != "add" && before->op != "add_n") ||
        before->inputs.size() == kMostTerms || !edit_.has_one_reader(sum.inputs[0]) ||
        parent_of(before->layer) != parent_of(sum.layer))
      return {};
    std::vector<ValueId> terms = before->inputs;
    terms.push_back(sum.inputs[1]);
    const ir::TensorType type = edit_.graph().value(sum.outputs[0]).type;
    const bool alike = std::ranges::all_of(
        terms, [&](ValueId term) { return edit_.graph().value(term).type == type; });
    if (!alike || !ir::is_float(type.dtype)) return {};
    PLIMSOLL_TRY(const std::vector<ValueId> made, edit_.insert(id, "add_n", std::move(terms)));
    edit_.replace(sum.outputs[0], made[0]);
    return {};
  }

  GraphEditor edit_;
};

}  // namespace

Result<ir::Graph> fuse_residuals(const ir::Graph& graph) {
  const bool any = std::ranges::any_of(graph.nodes, [](const ir::Node& node) {
    return node.op == "add" || node.op == "add_relu" || node.op == "relu_grad";
  });
  if (!any) return graph;
  PLIMSOLL_TRY(ir::Graph out, ResidualFuser(graph).run());
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
