// Several memories: which buffers live where.
//
// What hangs together (groups, classes) moves together, as a cluster. Every cluster starts in the
// cheapest memory it may use. A memory that overflows gives clusters up, those alive at its fullest
// moment first, the one with the least extra cost per byte relieved first, until what is left
// packs. Small problems (up to 4096 assignments) are settled exactly instead: assignments in order
// of cost, the first that packs everywhere is the cheapest.
//
// Status: kOptimal when the cost is proven least, kFeasible when all capacities hold, kInfeasible
// only after every assignment has been refuted.
#pragma once

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/model/packing.h"
#include "plimsoll/pack/pack_options.h"

namespace plimsoll::pack {

Packing pack_memories(const Problem& problem, const PackOptions& options, Budget& budget);

}  // namespace plimsoll::pack
