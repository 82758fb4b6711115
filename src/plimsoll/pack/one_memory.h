// The whole answer for a problem with one memory: bodies, the portfolio, offsets, and where nothing
// fits, the buffers that alone do not fit.
#pragma once

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/model/packing.h"
#include "plimsoll/pack/pack_options.h"

namespace plimsoll::pack {

Packing pack_one_memory(const Problem& problem, const PackOptions& options, Budget& budget);

}  // namespace plimsoll::pack
