#include "plimsoll/runtime/update_owners.h"

#include "plimsoll/ops/in_place_pairs.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::runtime {

std::vector<ValueId> update_owners(const ir::Graph& graph) {
  std::vector<ValueId> owners(graph.values.size());
  for (std::size_t v = 0; v < owners.size(); ++v) owners[v] = ValueId(v);
  for (const ir::Node& node : graph.nodes) {
    const ops::InPlace& rule = ops::definition_of(node).in_place;
    if (!rule.must()) continue;
    for (const ops::InPlace::Pair& pair : ops::pairs_of(rule, node)) {
      owners[node.outputs[static_cast<std::size_t>(pair.output)].index()] =
          owners[node.inputs[static_cast<std::size_t>(pair.input)].index()];
    }
  }
  return owners;
}

}  // namespace plimsoll::runtime
