// Adds what ranks sent, in the order of ranks, whatever order it came in.
//
// Floats of 16 bits are added in 32 and rounded once, to the nearest even.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/ir/dtype.h"

namespace plimsoll::dist {

// own[i] becomes x0[i] + x1[i] + ... where x_rank is `own` and the others stand in `received`, one
// behind the other. fp64, fp32, fp16, bf16 and whole numbers of 8 to 64 bits.
void add_parts_in_order(std::byte* own, const std::byte* received, std::int64_t count,
                        ir::DType dtype, int rank, int size);
bool can_add(ir::DType dtype);

}  // namespace plimsoll::dist
