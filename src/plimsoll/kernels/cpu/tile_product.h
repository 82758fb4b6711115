// Small matrix products inside a parallel loop: C = A B or C += A B on blocks of larger tensors.
//
// oneDNN's matrix product, made for one thread and run by each thread of a parallel loop on its own
// block. Every lane (thread) has its own argument objects and its own scratch, so lanes do not
// meet.
#pragma once

#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

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

  // `accumulate`: C += A B. Made with OpenMP set to one thread, and leaves it set to `lanes`.
  TileProduct(const Sizes& sizes, MatrixSteps a, MatrixSteps b, MatrixSteps c, bool accumulate,
              int lanes);
  Bytes scratch() const { return scratch_; }  // of one lane
  void run(int lane, const float* a, const float* b, float* c, std::byte* scratch);

 private:
  struct Lane {
    dnnl::stream stream;
    dnnl::memory a;
    dnnl::memory b;
    dnnl::memory c;
    dnnl::memory scratch;
    std::unordered_map<int, dnnl::memory> arguments;
  };
  dnnl::matmul primitive_;
  std::vector<Lane> lanes_;
  Bytes scratch_;
};

}  // namespace plimsoll::kernels
