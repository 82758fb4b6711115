// The inner loops of the reference evaluation of products: unit strides, doubles, nothing else.
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll::ops {

// y += a * x
inline void axpy(std::int64_t count, double a, const double* x, double* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] += a * x[i];
}

// Four partial sums, because one chain of additions waits for each result.
inline double dot(std::int64_t count, const double* a, const double* b) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (; i < count; ++i) s0 += a[i] * b[i];
  return (s0 + s1) + (s2 + s3);
}

// c[rows,columns] += a[rows,inner] * b[inner,columns]; the order i-k-j streams through b and c.
inline void multiply_add(std::int64_t rows, std::int64_t inner, std::int64_t columns,
                         const double* a, const double* b, double* c) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < inner; ++k) {
      axpy(columns, a[i * inner + k], b + k * columns, c + i * columns);
    }
  }
}

// [rows,columns] turned into [columns,rows].
inline std::vector<double> turned(std::int64_t rows, std::int64_t columns, const double* x) {
  std::vector<double> out(static_cast<std::size_t>(rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j)
      out[static_cast<std::size_t>(j * rows + i)] = x[i * columns + j];
  }
  return out;
}

}  // namespace plimsoll::ops
