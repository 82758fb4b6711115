// Loops over tensors that do not lie alike: broadcast operands, other orders of axes.
//
// A StridedLoop is the iteration space of an output with, for every operand, its step along each
// axis (0 where it is broadcast). Axes are put in the output's memory order and neighbours that
// step alike are joined, so adding a bias [C,1,1] to NCHW becomes [N*C... as few and as long loops
// as there can be:
//   y[8,64,56,56] + b[64,1,1]              extents 8, 64, 3136    steps of b 0, 1, 0
//   the same, channels last                extents 25088, 64      steps of b 0, 1
// The last axis is the row that an inner function runs over.
#pragma once

#include <array>
#include <vector>

#include "plimsoll/ir/tensor_type.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/site.h"

namespace plimsoll::kernels {

struct StridedLoop {
  std::vector<std::int64_t> extents;             // outermost first; at least one
  std::vector<std::vector<std::int64_t>> steps;  // [operand][axis], in elements

  std::int64_t row() const { return extents.back(); }
  std::int64_t rows() const {
    std::int64_t out = 1;
    for (std::size_t i = 0; i + 1 < extents.size(); ++i) out *= extents[i];
    return out;
  }
  std::int64_t row_step(std::size_t operand) const { return steps[operand].back(); }
  // Where element `first` of row number `index` of an operand lies.
  std::int64_t place(std::size_t operand, std::int64_t index, std::int64_t first) const {
    return row_offset(operand, index) + first * row_step(operand);
  }
  // Where row number `index` of an operand begins.
  std::int64_t row_offset(std::size_t operand, std::int64_t index) const {
    std::int64_t offset = 0;
    for (std::size_t i = extents.size() - 1; i-- > 0;) {
      offset += index % extents[i] * steps[operand][i];
      index /= extents[i];
    }
    return offset;
  }
};

// The loop over `shape` in the memory order of `order` (a layout without blocks) with operands
// whose strides per axis of `shape` are given.
StridedLoop make_strided_loop(const ir::TensorType& order,
                              const std::vector<std::array<std::int64_t, ir::kMaxRank>>& strides);

// Strides of an operand seen as `out` by numpy's broadcasting: 0 along broadcast axes.
std::array<std::int64_t, ir::kMaxRank> broadcast_strides_in(const ir::TensorType& operand,
                                                            const ir::Shape& out);

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
