// Wide layers: random graphs in which everything soon depends on everything.
//
// Layers of equal width, in order; a task reads `inputs` values drawn from the last `back` layers.
// After two layers nearly every value depends on nearly every one before, so recomputing a value
// that is long gone recomputes half of the graph, and the room for other orders is small. What is
// hard for a budget here: find the order first, then drop what can be had again at once.
//
// Times are even between 1 and 999, sizes between 1 and 1,000 KiB. Deterministic in the seed.
#pragma once

#include <cstdint>

#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct WideLayers {
  int tasks = 1000;
  int width = 10;
  int inputs = 4;
  int back = 3;
  std::uint64_t seed = 1;
};

Workload wide_layers(const WideLayers& shape);

}  // namespace plimsoll::schedule
