// A plan for one memory becomes a plan for several: buffers get windows in faster memories, moves
// become steps, and every step reads and writes where its bytes lie.
//
//   before   conv x→h   relu h→h   conv h→y           arena 0: x h y
//   after    copy_in w  conv x→h'  relu h'→h'  conv h',w'→y     arena 2: h' w'
//
// Copies are steps on two streams of their own, with waits: for what they copy, and for whoever
// used their place before. Arena 0 keeps its offsets; a buffer that is never in device memory any
// more is gone from it. The other arenas are packed (pack/pack.h) under their capacity. Where
// packing needs more, the windows that ended above it go back to device memory, and it is packed
// again: at worst nothing moves, unless device memory is read only.
//
// The answer is checked like any plan (check_plan.h knows every byte of every arena), and runs like
// any plan: on the CPU each memory is an arena, so the results are the same bit by bit.
//
// Takes plans of one compute stream that copy nothing yet. Failures: kDoesNotFit where device
// memory is read only and the others cannot hold what steps write; kUsage for other plans.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/plan/memories/choose_placement.h"

namespace plimsoll::plan {

struct PlacementOptions {
  PlacementChoice choice = PlacementChoice::kSearch;
  std::uint64_t seed = 1;
  std::int64_t most_moves = 30'000;  // of the search, from either start
};

struct MemorySummary {
  std::string name;
  Bytes capacity;
  Bytes bytes;      // of the arena
  Bytes copied_in;  // from device memory
  Bytes copied_out;
  std::int64_t windows = 0;
};

struct PlacementSummary {
  PlacementChoice choice = PlacementChoice::kHome;
  double home_seconds = 0;    // everything in device memory
  double greedy_seconds = 0;  // zero: it was not tried
  double seconds = 0;
  std::vector<MemorySummary> memories;
};

Result<PlacementSummary> place_in_memories(Plan& plan, const schedule::DeviceProfile& profile,
                                           const CostPartsOf& cost,
                                           const PlacementOptions& options);

}  // namespace plimsoll::plan
