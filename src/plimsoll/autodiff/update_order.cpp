#include "plimsoll/autodiff/update_order.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "plimsoll/ir/in_order.h"
#include "plimsoll/ops/in_place_pairs.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::autodiff {

ir::Graph updates_behind_readers(ir::Graph graph) {
  const std::size_t count = graph.nodes.size();
  std::vector<std::size_t> last_reader(graph.values.size(), 0);
  for (std::size_t n = 0; n < count; ++n) {
    for (const ValueId input : graph.nodes[n].inputs) {
      if (input.valid()) last_reader[input.index()] = n;
    }
  }
  // An update runs behind the last reader of everything it overwrites.
  std::vector<std::size_t> behind(count);
  std::iota(behind.begin(), behind.end(), std::size_t{0});
  bool moves = false;
  for (std::size_t n = 0; n < count; ++n) {
    const ir::Node& node = graph.nodes[n];
    if (!ops::definition_of(node).in_place.must()) continue;
    for (const ops::InPlace::Pair& pair : ops::pairs_of(ops::definition_of(node).in_place, node)) {
      behind[n] = std::max(behind[n],
                           last_reader[node.inputs[static_cast<std::size_t>(pair.input)].index()]);
    }
    moves = moves || behind[n] != n;
  }
  if (!moves) return graph;

  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(behind[a], behind[a] != a) < std::pair(behind[b], behind[b] != b);
  });
  return ir::in_order(std::move(graph), order);
}

}  // namespace plimsoll::autodiff
