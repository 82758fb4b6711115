// Layered networks: random graphs in the manner of those published for ordering and recomputing.
//
// Layers of changing width. A task reads those of the layer before that lie near its place; about
// one in two has an edge that skips ahead by any number of layers, at about the same place. Times
// are even between 1 and 999; sizes are mostly small, a third large. The order is that of a
// depth-first walk that now and then takes another task that is ready.
//
//   layer 0      o
//   layer 1    o o o o        each reads what is near it in the layer above
//   layer 2   o o o o o ──┐
//   layer 3     o o o     │   and some from far back
//   layer 4    o o o o ◀──┘
//
// Of 100, 250, 500 and 1,000 tasks with a mean width of 5, 11, 17 and 22 they have about as many
// edges as the published ones (236, 944, 2,461 and 5,875). Why not only those: they cannot be
// shipped, and a search should be chosen on other graphs than those it is judged by.
//
// Deterministic in the seed.
#pragma once

#include <cstdint>

#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct LayeredNetwork {
  int tasks = 250;  // at least 4
  double width = 11;
  double reach = 1;  // 3: about twice as many edges
  std::uint64_t seed = 1;
};

Workload layered_network(const LayeredNetwork& shape);

}  // namespace plimsoll::schedule
