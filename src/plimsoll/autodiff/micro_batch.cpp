#include "plimsoll/autodiff/micro_batch.h"

#include <unordered_map>

#include "plimsoll/autodiff/differentiate.h"
#include "plimsoll/autodiff/rank_sums.h"
#include "plimsoll/autodiff/update_order.h"
#include "plimsoll/autodiff/weight_updates.h"
#include "plimsoll/base/checked.h"
#include "plimsoll/ops/elementwise/binary.h"

namespace plimsoll::autodiff {
namespace {

// Copies a forward graph into a builder several times, sharing its sources.
class Replicator {
 public:
  Replicator(Builder& builder, const ir::Graph& forward, int copies)
      : builder_(builder), forward_(forward), copies_(copies), source_(forward.values.size()) {}

  Status copy_sources() {
    for (std::size_t v = 0; v < forward_.values.size(); ++v) {
      const ir::Value& value = forward_.values[v];
      if (!ir::is_source(value.kind)) continue;
      ir::TensorType type = value.type;
      if (value.kind == ir::ValueKind::kInput) {
        if (type.shape.rank() == 0)
          return bad_input("input '{}': a scalar cannot be cut into micro-batches", value.name);
        const auto extent = checked_multiply(type.shape[0], copies_);
        if (!extent)
          return bad_input("input '{}': too large for {} micro-batches", value.name, copies_);
        type.shape[0] = *extent;
      }
      source_[v] = builder_.graph().add_source(value.name, value.kind, type, value.init);
      if (const auto* data = forward_.data(ValueId(v)))
        builder_.graph().constants.push_back({source_[v], *data});
    }
    return {};
  }

  // The values of copy `index`, by id in the forward graph. State that the copy before changed is
  // read in its new version.
  std::vector<ValueId> copy_nodes(int index) {
    std::vector<ValueId> now = source_;
    for (std::size_t v = 0; v < forward_.values.size(); ++v) {
      if (forward_.values[v].kind == ir::ValueKind::kInput) now[v] = slice(ValueId(v), index).id();
    }
    for (const auto& [old_version, next] : carried_) now[old_version.index()] = next;
    for (const ir::Node& node : forward_.nodes) {
      builder_.set_layer(node.layer);
      builder_.set_phase(node.phase);
      std::vector<Var> inputs;
      for (const ValueId input : node.inputs)
        inputs.push_back(input.valid() ? builder_.var(now[input.index()]) : Var());
      const std::vector<Var> outputs = builder_.call(node.op, inputs, node.attributes);
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        now[node.outputs[i].index()] = outputs[i].id();
    }
    builder_.set_layer("");
    builder_.set_phase(ir::Phase::kForward);
    for (const ir::Update& update : forward_.updates)
      carried_[update.source] = now[update.next.index()];
    return now;
  }

  void add_updates() {
    for (const ir::Update& update : forward_.updates) {
      builder_.graph().updates.push_back({source_[update.source.index()], carried_[update.source]});
    }
  }

  ValueId source(ValueId id) const { return source_[id.index()]; }

 private:
  Var slice(ValueId input, int index) {
    const ir::Shape& shape = forward_.value(input).type.shape;
    ir::Ints starts(static_cast<std::size_t>(shape.rank()), 0);
    ir::Ints ends(shape.begin(), shape.end());
    ir::Ints steps(starts.size(), 1);
    starts[0] = shape[0] * index;
    ends[0] = shape[0] * (index + 1);
    return builder_.call1("slice", {builder_.var(source_[input.index()])},
                          {{"starts", starts}, {"ends", ends}, {"steps", steps}});
  }

  Builder& builder_;
  const ir::Graph& forward_;
  int copies_;
  std::vector<ValueId> source_;
  std::unordered_map<ValueId, ValueId> carried_;
};

}  // namespace

Result<ir::Graph> make_accumulating_graph(const ir::Graph& forward,
                                          const TrainingOptions& options) {
  const std::vector<ValueId> weights = trained_weights(forward, options);
  Builder builder(forward.name);
  Replicator replicator(builder, forward, options.accumulate);
  PLIMSOLL_RETURN_IF_ERROR(replicator.copy_sources());
  std::vector<Var> wrt;
  for (const ValueId id : weights) wrt.push_back(builder.var(replicator.source(id)));

  const RankSums ranks(options);
  const double share = 1.0 / options.accumulate;
  std::vector<Var> sums(wrt.size());
  Var mean;
  for (int index = 0; index < options.accumulate; ++index) {
    const std::vector<ValueId> copy = replicator.copy_nodes(index);
    const Var loss = ranks.share(builder.var(copy[forward.outputs.front().index()]) * share);
    mean = mean ? mean + loss : loss;
    PLIMSOLL_TRY(const std::vector<Var> gradients, differentiate(builder, loss, wrt, {}));
    builder.set_phase(ir::Phase::kBackward);
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      if (gradients[i]) sums[i] = sums[i] ? sums[i] + gradients[i] : gradients[i];
    }
    builder.set_phase(ir::Phase::kForward);
  }
  ranks.sum_all(builder, sums);
  replicator.add_updates();
  finish_updates(builder, wrt, sums, options);
  std::vector<Var> outputs{ranks.sum(mean)};
  if (options.gradients_as_outputs) outputs.insert(outputs.end(), sums.begin(), sums.end());
  PLIMSOLL_TRY(ir::Graph graph, builder.finish(outputs));
  return updates_behind_readers(std::move(graph));
}

}  // namespace plimsoll::autodiff
