// Sums down the columns of a matrix: bias gradients, gamma and beta gradients.
//
// Rows are cut into a number of chunks that depends on the matrix alone; each chunk sums into its
// own row of scratch, and the rows of scratch are added in order. So the bits do not depend on
// threads.
#pragma once

#include <cstdint>

#include "plimsoll/base/units.h"

namespace plimsoll::kernels {

class ColumnSums {
 public:
  ColumnSums() = default;
  ColumnSums(std::int64_t rows, std::int64_t columns);
  Bytes scratch() const { return Bytes(chunks_ * columns_ * 4); }
  // out[c] = sum over r of x[r * columns + c].
  void run(const float* x, float* out, float* scratch) const;

  std::int64_t chunks() const { return chunks_; }
  std::int64_t grain() const { return grain_; }

 private:
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::int64_t grain_ = 1;
  std::int64_t chunks_ = 0;
};

// to[i] += from[i]
void add_range(const float* from, float* to, std::int64_t n);
// out[i] = sum over k < count of rows[k * n + i], in order of k.
void add_rows(const float* rows, std::int64_t count, std::int64_t n, float* out);

}  // namespace plimsoll::kernels
