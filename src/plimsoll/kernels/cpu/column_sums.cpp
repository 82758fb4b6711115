#include "plimsoll/kernels/cpu/column_sums.h"

#include <cstring>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

constexpr std::int64_t kMostChunks = 32;

PLIMSOLL_VECTORIZED void accumulate_rows(const float* x, std::int64_t rows, std::int64_t columns,
                                         float* out) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float* at = x + r * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      out[c] += (at[c] + at[columns + c]) + (at[2 * columns + c] + at[3 * columns + c]);
    }
  }
  for (; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) out[c] += x[r * columns + c];
  }
}

PLIMSOLL_VECTORIZED void add_vectors(const float* from, float* to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

}  // namespace

void add_range(const float* from, float* to, std::int64_t n) {
  add_vectors(from, to, n);
}

void add_rows(const float* rows, std::int64_t count, std::int64_t n, float* out) {
  if (count == 0) {
    std::memset(out, 0, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  std::memcpy(out, rows, static_cast<std::size_t>(n) * sizeof(float));
  for (std::int64_t k = 1; k < count; ++k) add_vectors(rows + k * n, out, n);
}

ColumnSums::ColumnSums(std::int64_t rows, std::int64_t columns)
    : rows_(rows),
      columns_(columns),
      grain_(std::max(row_grain(columns), ceil_div(rows, kMostChunks))) {
  chunks_ = ceil_div(rows_, grain_);
}

void ColumnSums::run(const float* x, float* out, float* scratch) const {
  parallel_chunks(rows_, grain_, [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
    float* partial = scratch + chunk * columns_;
    std::memset(partial, 0, static_cast<std::size_t>(columns_) * sizeof(float));
    accumulate_rows(x + begin * columns_, end - begin, columns_, partial);
  });
  add_rows(scratch, chunks_, columns_, out);
}

}  // namespace plimsoll::kernels
