#include "plimsoll/rewrite/drop_casts.h"

#include <algorithm>

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

bool is_narrow(ir::DType dtype) {
  return dtype == ir::DType::kBF16 || dtype == ir::DType::kF16;
}

class CastDropper {
 public:
  explicit CastDropper(const ir::Graph& graph) : edit_(graph) {}

  Result<ir::Graph> run() {
    for (std::size_t n = 0; n < edit_.original_nodes(); ++n) {
      const NodeId id(n);
      const ir::Node node = edit_.graph().node(id);
      if (node.op == "cross_entropy") {
        PLIMSOLL_RETURN_IF_ERROR(reread(id, node, 0, widened(node.inputs[0])));
      } else if (node.op == "cross_entropy_grad") {
        PLIMSOLL_RETURN_IF_ERROR(narrow_loss_gradient(id, node));
      } else if (node.op == "adamw" || node.op == "adam" || node.op == "momentum" ||
                 node.op == "sgd") {
        PLIMSOLL_RETURN_IF_ERROR(reread(id, node, 1, widened(node.inputs[1])));
      } else if (node.op == "batch_norm" || node.op == "layer_norm" || node.op == "rms_norm") {
        PLIMSOLL_RETURN_IF_ERROR(widen_parameters(id, node, 1));
      } else if (node.op == "batch_norm_grad" || node.op == "layer_norm_grad" ||
                 node.op == "rms_norm_grad") {
        PLIMSOLL_RETURN_IF_ERROR(widen_parameters(id, node, 2));
      }
    }
    return edit_.finish();
  }

 private:
  const ir::TensorType& type(ValueId value) const { return edit_.graph().value(value).type; }

  // What a value was cast from, where it is a cast.
  ValueId origin(ValueId value) const {
    const ir::Node* cast = edit_.producer(value);
    return cast != nullptr && cast->op == "cast" ? cast->inputs[0] : ValueId();
  }
  // The narrow value that this one of fp32 is a cast of.
  ValueId widened(ValueId value) const {
    const ValueId from = origin(value);
    return from.valid() && is_narrow(type(from).dtype) && type(value).dtype == ir::DType::kF32
               ? from
               : ValueId();
  }
  // The value of fp32 that this narrow one is a cast of.
  ValueId narrowed(ValueId value) const {
    const ValueId from = origin(value);
    return from.valid() && is_narrow(type(value).dtype) && type(from).dtype == ir::DType::kF32
               ? from
               : ValueId();
  }

  Result<std::vector<ValueId>> insert_with(NodeId at, const ir::Node& node,
                                           std::vector<ValueId> inputs) {
    return edit_.insert(at, node.op, std::move(inputs), node.attributes);
  }

  void replace_all(const ir::Node& node, const std::vector<ValueId>& made) {
    for (std::size_t i = 0; i < made.size(); ++i) edit_.replace(node.outputs[i], made[i]);
  }

  // The same node reading `by` at one input; its results keep their types.
  Status reread(NodeId id, const ir::Node& node, std::size_t input, ValueId by) {
    if (!by.valid()) return {};
    std::vector<ValueId> inputs = node.inputs;
    inputs[input] = by;
    PLIMSOLL_TRY(const std::vector<ValueId> made, insert_with(id, node, std::move(inputs)));
    replace_all(node, made);
    return {};
  }

  // Everybody who reads it casts it to this type.
  bool is_only_cast_to(ValueId value, ir::DType dtype) const {
    const auto& readers = edit_.readers(value);
    return !edit_.is_output(value) && std::ranges::all_of(readers, [&](NodeId reader) {
      const ir::Node& node = edit_.graph().node(reader);
      return node.op == "cast" && type(node.outputs[0]).dtype == dtype;
    });
  }

  // Readers of casts of `old` read `by`, which has the casts' type.
  void replace_casts(ValueId old, ValueId by) {
    const std::vector<NodeId> readers = edit_.readers(old);
    for (const NodeId reader : readers) edit_.replace(edit_.graph().node(reader).outputs[0], by);
  }

  Status narrow_loss_gradient(NodeId id, const ir::Node& node) {
    const ValueId logits = widened(node.inputs[1]);
    if (!logits.valid() || !is_only_cast_to(node.outputs[0], type(logits).dtype)) return {};
    std::vector<ValueId> inputs = node.inputs;
    inputs[1] = logits;
    PLIMSOLL_TRY(const std::vector<ValueId> made, insert_with(id, node, std::move(inputs)));
    replace_casts(node.outputs[0], made[0]);
    return {};
  }

  // gamma and beta (where there is one) as they were before they were narrowed. A gradient's
  // results for them become fp32 too, which is what they were cast to.
  Status widen_parameters(NodeId id, const ir::Node& node, std::size_t gamma) {
    const bool is_gradient = gamma == 2;
    std::vector<ValueId> inputs = node.inputs;
    // layer_norm_grad and rms_norm_grad read gamma alone: statistics follow it.
    const bool reads_beta = node.op == "batch_norm" || node.op == "batch_norm_grad" || !is_gradient;
    const std::size_t end = std::min(inputs.size(), gamma + (reads_beta ? 2 : 1));
    if (node.op == "rms_norm" && inputs.size() > 2) return {};
    for (std::size_t i = gamma; i < end; ++i) {
      if (!inputs[i].valid()) continue;
      inputs[i] = narrowed(inputs[i]);
      if (!inputs[i].valid()) return {};
    }
    if (is_gradient) {
      for (std::size_t i = 1; i < node.outputs.size(); ++i) {
        if (!is_read_wide(node.outputs[i])) return {};
      }
    }
    PLIMSOLL_TRY(const std::vector<ValueId> made, insert_with(id, node, std::move(inputs)));
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (is_gradient && i > 0) {
        replace_casts(node.outputs[i], made[i]);
      } else {
        edit_.replace(node.outputs[i], made[i]);
      }
    }
    return {};
  }
  bool is_read_wide(ValueId value) const { return is_only_cast_to(value, ir::DType::kF32); }

  GraphEditor edit_;
};

}  // namespace

Result<ir::Graph> drop_casts(const ir::Graph& graph) {
  const bool any =
      std::ranges::any_of(graph.nodes, [](const ir::Node& node) { return node.op == "cast"; });
  if (!any) return graph;
  PLIMSOLL_TRY(ir::Graph out, CastDropper(graph).run());
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
