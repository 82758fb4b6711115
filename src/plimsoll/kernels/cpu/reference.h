// The kernel of last resort: the reference evaluation of the operator's definition.
//
// It takes every dtype and every layout, in double precision, and allocates as it likes: for tests,
// fp64 and rare types only.
#pragma once

#include "plimsoll/kernels/cpu/site.h"

namespace plimsoll::kernels {

std::unique_ptr<Kernel> make_reference(const Site& site);

}  // namespace plimsoll::kernels
