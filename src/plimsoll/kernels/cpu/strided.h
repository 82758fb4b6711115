// The strided loops of the CPU's kernels: over the node of an elementwise operator, row by row on
// all threads.
#pragma once

#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/site.h"
#include "plimsoll/kernels/strided_loop.h"

namespace plimsoll::kernels {

// The loop over an elementwise node: operand 0 is its output, then its inputs, broadcast to it. No
// layout has blocks, the output has elements, and its rows are contiguous.
StridedLoop broadcast_loop(const Site& site);

// Calls row(number, first, count) for stretches of rows that cover the loop; one long row is shared
// among threads too.
template <typename Row>
void for_each_row(const StridedLoop& loop, const Row& row) {
  if (loop.rows() == 1) {
    parallel_ranges(loop.row(), kElementGrain,
                    [&](std::int64_t begin, std::int64_t end) { row(0, begin, end - begin); });
    return;
  }
  parallel_rows(loop.rows(), loop.row(), [&](std::int64_t r) { row(r, 0, loop.row()); });
}

}  // namespace plimsoll::kernels
