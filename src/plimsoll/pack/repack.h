// Incremental re-packing: the problem has changed a little; move as little as possible.
//
// Hints are the old offsets. The capacity is that of the problem, or the height the old packing
// had. A hinted body is kept when its old place is still allowed and free of other kept ones (the
// largest are asked first); the rest is packed around the kept. If that does not fit, kept bodies
// that are alive together with those that ended too high are released, smallest first, one, two,
// four... of them, and at last all. `Packing::moved` counts buffers that do not lie at their hint.
//
// Example: the harbour of problem.h with its old offsets as hints and a new buffer of 4 bytes over
// [3,9): with capacity 16 nothing moves, the newcomer goes to 12; with capacity 12 the answer is
// infeasible.
#pragma once

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/model/packing.h"
#include "plimsoll/pack/pack_options.h"

namespace plimsoll::pack {

Packing repack(const Problem& problem, const PackOptions& options, Budget& budget);

}  // namespace plimsoll::pack
