// softmax, log_softmax and their gradients along the last axis.
#include <cmath>

#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/row_math.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

// Null-like when the axis is not the last: the rows are not contiguous then.
std::int64_t row_width(const Site& site) {
  const ir::Shape& shape = site.out().shape;
  const std::int64_t axis = site.attributes().integer("axis");
  const bool last = axis == -1 || axis == shape.rank() - 1;
  return last && shape.rank() > 0 && all_f32(site) && all_row_major(site) ? shape[shape.rank() - 1]
                                                                          : 0;
}

void softmax_row(const float* x, float* y, std::int64_t n) {
  const float sum = row_exp(x, y, n, row_max(x, n));
  row_scale(y, n, 1.0F / sum);
}

PLIMSOLL_VECTORIZED void shift_row(const float* x, float* y, std::int64_t n, float shift) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] - shift;
}

void log_softmax_row(const float* x, float* y, std::int64_t n) {
  const float most = row_max(x, n);
  shift_row(x, y, n, most + std::log(row_sum_exp(x, n, most)));
}

PLIMSOLL_VECTORIZED void softmax_gradient_row(const float* dy, const float* y, float* dx,
                                              std::int64_t n) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t i = 0; i < n; ++i) dot += dy[i] * y[i];
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
}

PLIMSOLL_VECTORIZED void log_softmax_gradient_row(const float* dy, const float* y, float* dx,
                                                  std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += dy[i];
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) dx[i] = dy[i] - vector_exp(y[i]) * sum;
}

template <void (*row)(const float*, float*, std::int64_t)>
std::unique_ptr<Kernel> make_softmax(const Site& site) {
  const std::int64_t width = row_width(site);
  if (width == 0) return nullptr;
  const std::int64_t rows = site.out().shape.elements() / width;
  return make_kernel(site, [=](const Arguments& a) {
    parallel_rows(rows, width, [&](std::int64_t r) {
      row(input<float>(a, 0) + r * width, output<float>(a) + r * width, width);
    });
  });
}

template <void (*row)(const float*, const float*, float*, std::int64_t)>
std::unique_ptr<Kernel> make_softmax_grad(const Site& site) {
  const std::int64_t width = row_width(site);
  if (width == 0) return nullptr;
  const std::int64_t rows = site.out().shape.elements() / width;
  return make_kernel(site, [=](const Arguments& a) {
    parallel_rows(rows, width, [&](std::int64_t r) {
      row(input<float>(a, 0) + r * width, input<float>(a, 1) + r * width,
          output<float>(a) + r * width, width);
    });
  });
}

}  // namespace

std::span<const TableEntry> softmax_kernels() {
  static constexpr TableEntry kRows[] = {
      {"log_softmax", make_softmax<log_softmax_row>},
      {"log_softmax_grad", make_softmax_grad<log_softmax_gradient_row>},
      {"softmax", make_softmax<softmax_row>},
      {"softmax_grad", make_softmax_grad<softmax_gradient_row>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
