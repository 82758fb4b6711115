#include "plimsoll/rewrite/fuse_activation.h"

#include <algorithm>

#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

bool is_batch_norm(const ir::Node& node) {
  return (node.op == "batch_norm" || node.op == "batch_norm_inference") &&
         ops::attributes_of(node).text("activation").empty();
}

bool is_convolution(const ir::Node& node) {
  return node.op == "conv" && ops::attributes_of(node).text("activation").empty();
}

bool is_plain_sum(const ir::Graph& graph, const ir::Node& node) {
  return node.op == "add" && graph.value(node.inputs[0]).type == graph.value(node.inputs[1]).type &&
         ir::is_float(graph.value(node.inputs[0]).type.dtype);
}

}  // namespace

ir::Graph fuse_activations(const ir::Graph& graph, bool trains) {
  ir::Graph out = graph;
  std::vector<std::size_t> uses(graph.values.size(), 0);
  for (const ir::Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (input.valid()) ++uses[input.index()];
    }
  }
  for (const ValueId output : graph.outputs) ++uses[output.index()];
  for (const ir::Update& update : graph.updates) ++uses[update.next.index()];

  // Where a ReLU's result now comes from; followed once at the end, so the pass is linear.
  std::vector<ValueId> stands_for(graph.values.size());
  for (std::size_t v = 0; v < stands_for.size(); ++v) stands_for[v] = ValueId(v);
  for (ir::Node& node : out.nodes) {
    if (node.op != "relu") continue;
    const ValueId before = node.inputs[0];
    const ir::Value& value = out.value(before);
    if (!value.producer.valid() || value.output != 0 || uses[before.index()] != 1) continue;
    ir::Node& producer = out.node(value.producer);
    if (is_batch_norm(producer) || (!trains && is_convolution(producer))) {
      producer.attributes.set("activation", std::string("relu"));
    } else if (is_plain_sum(out, producer)) {
      producer.op = "add_relu";
    } else {
      continue;
    }
    stands_for[node.outputs[0].index()] = before;
  }
  const auto follow = [&](ValueId& id) { id = id.valid() ? stands_for[id.index()] : id; };
  for (ir::Node& node : out.nodes) std::for_each(node.inputs.begin(), node.inputs.end(), follow);
  std::for_each(out.outputs.begin(), out.outputs.end(), follow);
  for (ir::Update& update : out.updates) follow(update.next);
  return out;
}

}  // namespace plimsoll::rewrite
