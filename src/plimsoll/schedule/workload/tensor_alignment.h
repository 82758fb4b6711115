// The alignment of every tensor in the arena, unless the device wants more (256 on CUDA); sizes are
// padded to it, because that is what the arena pays.
#pragma once

#include "plimsoll/base/units.h"

namespace plimsoll::schedule {

inline constexpr Bytes kTensorAlignment{64};

}  // namespace plimsoll::schedule
