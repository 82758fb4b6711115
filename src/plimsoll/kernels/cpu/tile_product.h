// Small matrix products inside a parallel loop: C = A B or C += A B on blocks of larger tensors.
//
// Each thread of the loop runs its own product on its own block, so it must be a plain function:
// no threads inside, nothing allocated. (oneDNN's product of this size allocates 72 KiB in every
// call, outside its scratchpad; that is why this one is ours.) The classic register tile:
//
//   B, 32 columns at a time, is packed into scratch as [inner][32], turned where its rows run down;
//   8 rows of A times that panel are kept in 16 vector registers over the whole inner loop.
//
// Every element of C is one sum in the order of the inner index, whatever the block: the bits do
// not depend on threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/base/units.h"

namespace plimsoll::kernels {

// A matrix inside a tensor: its element strides down a column and along a row.
struct MatrixSteps {
  std::int64_t down = 1;
  std::int64_t along = 1;
};

class TileProduct {
 public:
  struct Sizes {
    std::int64_t rows;     // of A and C
    std::int64_t inner;    // columns of A, rows of B
    std::int64_t columns;  // of B and C
  };

  // The rows of C are contiguous; `c_row` elements lie between them. One of B's steps is 1.
  TileProduct(const Sizes& sizes, MatrixSteps a, MatrixSteps b, std::int64_t c_row, bool accumulate)
      : sizes_(sizes), a_(a), b_(b), c_row_(c_row), accumulate_(accumulate) {}

  Bytes scratch() const;
  // `scratch` is aligned to 64 bytes.
  void run(const float* a, const float* b, float* c, std::byte* scratch) const;

 private:
  Sizes sizes_;
  MatrixSteps a_;
  MatrixSteps b_;
  std::int64_t c_row_;
  bool accumulate_;
};

}  // namespace plimsoll::kernels
