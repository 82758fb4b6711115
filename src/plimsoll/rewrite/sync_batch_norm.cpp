#include "plimsoll/rewrite/sync_batch_norm.h"

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

// Nodes that stand behind the norm that they replace.
class NormOfRanks {
 public:
  NormOfRanks(GraphEditor& edit, NodeId norm, const ops::CollectiveOptions& how)
      : edit_(edit), id_(norm), norm_(edit.graph().node(norm)), how_(how) {}

  Status replace() {
    PLIMSOLL_TRY(const std::vector<ValueId> own,
                 edit_.insert(id_, "batch_norm", norm_.inputs, norm_.attributes));
    PLIMSOLL_TRY(const ValueId mean, mean_of_ranks(own[1]));
    PLIMSOLL_TRY(const ValueId off, call("sub", {own[1], mean}));
    PLIMSOLL_TRY(const ValueId square, call("mul", {off, off}));
    PLIMSOLL_TRY(const ValueId spread, call("add", {own[2], square}));
    PLIMSOLL_TRY(const ValueId var, mean_of_ranks(spread));
    std::vector<ValueId> inputs = norm_.inputs;
    inputs.push_back(mean);
    inputs.push_back(var);
    PLIMSOLL_TRY(const ValueId y, call("batch_norm_inference", inputs, norm_.attributes));
    edit_.replace(norm_.outputs[0], y);
    edit_.replace(norm_.outputs[1], mean);
    edit_.replace(norm_.outputs[2], var);
    return {};
  }

 private:
  Result<ValueId> call(std::string_view op, std::vector<ValueId> inputs,
                       ir::Attributes attributes = {}) {
    PLIMSOLL_TRY(const std::vector<ValueId> made,
                 edit_.insert(id_, op, std::move(inputs), std::move(attributes)));
    return made[0];
  }

  Result<ValueId> mean_of_ranks(ValueId value) {
    ir::Attributes sum{{"ranks", how_.ranks}};
    if (how_.fixed_order) sum.set("order", std::string("fixed"));
    PLIMSOLL_TRY(const ValueId all, call("all_reduce", {value}, std::move(sum)));
    const ir::TensorType type = edit_.graph().value(value).type;
    PLIMSOLL_TRY(const ValueId share, call("fill", {},
                                           {{"shape", ir::Ints{}},
                                            {"dtype", std::string(ir::name(type.dtype))},
                                            {"value", 1.0 / static_cast<double>(how_.ranks)}}));
    return call("mul", {all, share});
  }

  GraphEditor& edit_;
  NodeId id_;
  ir::Node norm_;
  ops::CollectiveOptions how_;
};

// The unbiased variance of as many elements as all ranks have.
Status count_all(GraphEditor& edit, NodeId id, std::int64_t ranks) {
  const ir::Node node = edit.graph().node(id);
  ir::Attributes attributes = node.attributes;
  attributes.set("count", ranks * ops::attributes_of(node).integer("count"));
  PLIMSOLL_TRY(const std::vector<ValueId> next,
               edit.insert(id, node.op, node.inputs, std::move(attributes)));
  for (std::size_t i = 0; i < next.size(); ++i) edit.replace(node.outputs[i], next[i]);
  return {};
}

}  // namespace

Result<ir::Graph> sync_batch_norm(const ir::Graph& forward, const ops::CollectiveOptions& how) {
  GraphEditor edit(forward);
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const NodeId id(n);
    const std::string op = edit.graph().node(id).op;
    if (op == "batch_norm") PLIMSOLL_RETURN_IF_ERROR(NormOfRanks(edit, id, how).replace());
    if (op == "batch_norm_update") PLIMSOLL_RETURN_IF_ERROR(count_all(edit, id, how.ranks));
  }
  return edit.finish();
}

}  // namespace plimsoll::rewrite
