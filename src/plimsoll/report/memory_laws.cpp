#include "plimsoll/report/memory_laws.h"

#include <algorithm>
#include <map>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/in_place_pairs.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"

namespace plimsoll::report {
namespace {

using Uses = std::array<Bytes, plan::kUseCount>;

Bytes& at(Uses& uses, plan::Use use) {
  return uses[static_cast<std::size_t>(use)];
}

// Values that have no bytes of their own: views, and results that must lie over an input.
std::vector<bool> borrowed_values(const ir::Graph& graph) {
  std::vector<bool> out(graph.values.size(), false);
  for (const ir::Node& node : graph.nodes) {
    const ops::OpDefinition& definition = ops::definition_of(node);
    if (definition.in_place.must()) {
      for (const ops::InPlace::Pair& pair : ops::pairs_of(definition.in_place, node))
        out[node.outputs[static_cast<std::size_t>(pair.output)].index()] = true;
    }
    if (definition.views == nullptr) continue;
    for (const ops::View& view :
         definition.views(ops::call_of(graph, node), ops::output_types(graph, node))) {
      if (!view.input_inside)
        out[node.outputs[static_cast<std::size_t>(view.output)].index()] = true;
    }
  }
  return out;
}

Bytes rounded(Bytes bytes) {
  return Bytes(round_up(bytes.value, schedule::kTensorAlignment.value));
}

std::string layer_of(const ir::Graph& graph, const ir::Value& value) {
  if (value.producer.valid()) return graph.node(value.producer).layer;
  const std::size_t dot = value.name.find_last_of('.');
  return dot == std::string::npos ? std::string() : value.name.substr(0, dot);
}

// Calls visit(node, bytes) for every kernel that wants scratch.
template <typename Visit>
void for_each_scratch(const ir::Graph& graph, const ops::KernelTable& kernels, Visit visit) {
  if (kernels.facts.empty()) return;
  for (const ir::Node& node : graph.nodes) {
    const Bytes scratch = kernels.of(graph, node).scratch;
    if (scratch.value > 0) visit(node, rounded(scratch));
  }
}

// Calls visit(layer, use, bytes) for every tensor and every kernel's scratch, rounded.
template <typename Visit>
void for_each_use(const ir::Graph& graph, const ops::KernelTable& kernels, Visit visit) {
  for_each_tensor(graph, [&](ValueId id, plan::Use use) {
    const ir::Value& value = graph.value(id);
    visit(layer_of(graph, value), use, rounded(ir::bytes_of(value.type)));
  });
  for_each_scratch(graph, kernels, [&](const ir::Node& node, Bytes bytes) {
    visit(node.layer, plan::Use::kTemporary, bytes);
  });
}

}  // namespace

Bytes LayerBytes::total() const {
  Bytes sum;
  for (const Bytes bytes : by_use) sum += bytes;
  return sum;
}

std::string_view use_name(std::size_t use) {
  return plan::name(static_cast<plan::Use>(use));
}

std::array<Bytes, plan::kUseCount> logical_bytes(const ir::Graph& graph,
                                                 const ops::KernelTable& kernels) {
  Uses out{};
  for_each_use(graph, kernels,
               [&](const std::string&, plan::Use use, Bytes bytes) { at(out, use) += bytes; });
  return out;
}

std::vector<LayerBytes> bytes_by_layer(const ir::Graph& graph, const ops::KernelTable& kernels) {
  std::vector<LayerBytes> out;
  std::map<std::string, std::size_t> index;
  for_each_use(graph, kernels, [&](const std::string& layer, plan::Use use, Bytes bytes) {
    const auto [place, fresh] = index.try_emplace(layer, out.size());
    if (fresh) out.push_back({layer, {}});
    at(out[place->second].by_use, use) += bytes;
  });
  return out;
}

void for_each_tensor(const ir::Graph& graph, const std::function<void(ValueId, plan::Use)>& visit) {
  std::vector<bool> is_output(graph.values.size(), false);
  for (const ValueId output : graph.outputs) is_output[output.index()] = true;
  const std::vector<bool> borrowed = borrowed_values(graph);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!borrowed[v]) visit(ValueId(v), plan::use_of(graph, ValueId(v), is_output[v]));
  }
}

}  // namespace plimsoll::report
