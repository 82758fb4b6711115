#include "plimsoll/plan/buckets.h"

#include <algorithm>
#include <limits>

#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::plan {
namespace {

using schedule::TaskId;

constexpr int kNoBucket = -1;

// The gradient that an optimizer's update of a weight reads; invalid for any other node.
ValueId gradient_of(const ir::Graph& graph, const ir::Node& node) {
  if (node.phase != ir::Phase::kUpdate || !ops::definition_of(node).in_place.must() ||
      node.inputs.size() < 2)
    return {};
  return graph.value(node.inputs[0]).kind == ir::ValueKind::kWeight ? node.inputs[1] : ValueId{};
}

class Filler {
 public:
  Filler(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
         const std::vector<TaskId>& order, Bytes size)
      : graph_(graph),
        mapped_(mapped),
        order_(order),
        size_(size),
        wanted_(mapped.workload.values.size(), false),
        bucket_(mapped.workload.values.size(), kNoBucket) {}

  Buckets run() {
    for (const TaskId task : order_) {
      const ValueId gradient = gradient_of(graph_, graph_.node(mapped_.node_of_task[task.index()]));
      if (gradient.valid()) wanted_[owner(gradient).index()] = true;
    }
    fill();
    move_updates();
    std::vector<ValueId> weights;
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].kind == ir::ValueKind::kWeight) weights.emplace_back(v);
    }
    if (weights.size() > 1) out_.groups.push_back(std::move(weights));
    return std::move(out_);
  }

 private:
  ValueId owner(ValueId graph_value) const { return mapped_.place[graph_value.index()].value; }

  void fill() {
    Bytes filled = size_;
    for (const TaskId task : order_) {
      for (const ValueId value : mapped_.workload.task(task).outputs) {
        if (!wanted_[value.index()]) continue;
        if (filled >= size_) {
          out_.groups.emplace_back();
          last_.push_back(task);
          filled = Bytes(0);
        }
        bucket_[value.index()] = static_cast<int>(out_.groups.size()) - 1;
        out_.groups.back().push_back(mapped_.graph_value[value.index()]);
        last_.back() = task;
        filled += mapped_.workload.value(value).bytes;
      }
    }
  }

  void move_updates() {
    std::vector<std::vector<TaskId>> waiting(last_.size());
    std::vector<bool> full(last_.size(), false);
    for (const TaskId task : order_) {
      const ValueId gradient = gradient_of(graph_, graph_.node(mapped_.node_of_task[task.index()]));
      const int bucket = gradient.valid() ? bucket_[owner(gradient).index()] : kNoBucket;
      if (bucket != kNoBucket && !full[static_cast<std::size_t>(bucket)]) {
        waiting[static_cast<std::size_t>(bucket)].push_back(task);
        continue;
      }
      out_.order.push_back(task);
      for (std::size_t b = 0; b < last_.size(); ++b) {
        if (last_[b] != task) continue;
        full[b] = true;
        out_.order.insert(out_.order.end(), waiting[b].begin(), waiting[b].end());
      }
    }
  }

  const ir::Graph& graph_;
  const schedule::GraphWorkload& mapped_;
  const std::vector<TaskId>& order_;
  Bytes size_;
  std::vector<bool> wanted_;  // by workload value: some update reads it as its gradient
  std::vector<int> bucket_;   // by workload value
  std::vector<TaskId> last_;  // by bucket: who makes its last gradient
  Buckets out_;
};

}  // namespace

std::vector<std::vector<ValueId>> groups_of_collectives(const ir::Graph& graph) {
  std::vector<std::vector<ValueId>> out;
  bool any = false;
  for (const ir::Node& node : graph.nodes) {
    any = any || ops::is_collective(node.op);
    const bool makes = node.op == "all_reduce" || node.op == "gather_weights";
    if (makes && node.outputs.size() > 1) out.push_back(node.outputs);
    if (node.op == "scatter_sums" && node.inputs.size() > 1) out.push_back(node.inputs);
  }
  if (!any) return out;
  // Weights that are gathered together stand together; what ranks have parts of is not sent at the
  // start, and stands last.
  constexpr std::size_t kAlone = 0;
  std::vector<std::size_t> turn(graph.values.size(), kAlone);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    if (node.op != "gather_update") continue;
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
      turn[node.inputs[i].index()] = n * static_cast<std::size_t>(ops::kMostOfRunTensors) + i;
  }
  for (const ops::ShardedState& part : ops::sharded_state(graph))
    turn[part.value.index()] = std::numeric_limits<std::size_t>::max();
  std::vector<ValueId> state;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (ir::is_persistent(graph.values[v].kind)) state.emplace_back(v);
  }
  std::stable_sort(state.begin(), state.end(), [&](ValueId a, ValueId b) {
    return std::pair(graph.value(a).type.dtype, turn[a.index()]) <
           std::pair(graph.value(b).type.dtype, turn[b.index()]);
  });
  if (state.size() > 1) out.push_back(std::move(state));
  return out;
}

Buckets make_buckets(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
                     const std::vector<TaskId>& order, Bytes size) {
  return Filler(graph, mapped, order, size).run();
}

}  // namespace plimsoll::plan
