// Sums over one contiguous row that several kernels share: softmax, cross-entropy, attention,
// normalisations.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

float row_max(const float* x, std::int64_t n);
// Sum of e^(x - shift), nothing stored.
float row_sum_exp(const float* x, std::int64_t n, float shift);
// y = e^(x - shift); returns the sum. y may lie over x.
float row_exp(const float* x, float* y, std::int64_t n, float shift);
float row_dot(const float* a, const float* b, std::int64_t n);
void row_scale(float* x, std::int64_t n, float factor);

struct RowMoments {
  float mean;
  float rstd;  // 1 / sqrt(variance + epsilon)
};
RowMoments row_moments(const float* x, std::int64_t n, float epsilon);

}  // namespace plimsoll::kernels
