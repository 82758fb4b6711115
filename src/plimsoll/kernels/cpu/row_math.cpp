#include "plimsoll/kernels/cpu/row_math.h"

#include <cmath>

#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

PLIMSOLL_VECTORIZED float max_of(const float* x, std::int64_t n) {
  float out = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : out)
  for (std::int64_t i = 0; i < n; ++i) out = x[i] > out ? x[i] : out;
  return out;
}

PLIMSOLL_VECTORIZED float sum_exp_of(const float* x, std::int64_t n, float shift) {
  float out = 0;
#pragma omp simd reduction(+ : out)
  for (std::int64_t i = 0; i < n; ++i) out += vector_exp(x[i] - shift);
  return out;
}

PLIMSOLL_VECTORIZED float exp_of(const float* x, float* y, std::int64_t n, float shift) {
  float out = 0;
#pragma omp simd reduction(+ : out)
  for (std::int64_t i = 0; i < n; ++i) {
    const float e = vector_exp(x[i] - shift);
    y[i] = e;
    out += e;
  }
  return out;
}

PLIMSOLL_VECTORIZED float dot_of(const float* a, const float* b, std::int64_t n) {
  float out = 0;
#pragma omp simd reduction(+ : out)
  for (std::int64_t i = 0; i < n; ++i) out += a[i] * b[i];
  return out;
}

PLIMSOLL_VECTORIZED void scale_of(float* x, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

PLIMSOLL_VECTORIZED RowMoments moments_of(const float* x, std::int64_t n, float epsilon) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1.0F / std::sqrt(squares / static_cast<float>(n) + epsilon)};
}

}  // namespace

float row_max(const float* x, std::int64_t n) {
  return max_of(x, n);
}
float row_sum_exp(const float* x, std::int64_t n, float shift) {
  return sum_exp_of(x, n, shift);
}
float row_exp(const float* x, float* y, std::int64_t n, float shift) {
  return exp_of(x, y, n, shift);
}
float row_dot(const float* a, const float* b, std::int64_t n) {
  return dot_of(a, b, n);
}
void row_scale(float* x, std::int64_t n, float factor) {
  scale_of(x, n, factor);
}

RowMoments row_moments(const float* x, std::int64_t n, float epsilon) {
  return moments_of(x, n, epsilon);
}

}  // namespace plimsoll::kernels
