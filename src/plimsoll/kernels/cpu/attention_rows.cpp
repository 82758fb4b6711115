#include "plimsoll/kernels/cpu/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "plimsoll/kernels/cpu/row_math.h"
#include "plimsoll/kernels/cpu/vectorize.h"
#include "plimsoll/ops/products/attention_sizes.h"

namespace plimsoll::kernels {
namespace {

PLIMSOLL_VECTORIZED float scaled_max(float* x, std::int64_t n, float scale) {
  float out = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : out)
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = x[i] * scale;
    x[i] = value;
    out = value > out ? value : out;
  }
  return out;
}

PLIMSOLL_VECTORIZED float masked_max(float* x, std::int64_t n, float scale, const float* mask,
                                     std::int64_t step) {
  float out = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : out)
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = x[i] * scale + mask[i * step];
    x[i] = value;
    out = value > out ? value : out;
  }
  return out;
}

PLIMSOLL_VECTORIZED void gradient_range(float* scores, float* slopes, std::int64_t n, float scale,
                                        float lse, float mean) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float p = vector_exp(scores[i] * scale - lse);
    scores[i] = p;
    slopes[i] = p * (slopes[i] - mean) * scale;
  }
}

PLIMSOLL_VECTORIZED void masked_gradient_range(float* scores, float* slopes, std::int64_t n,
                                               float scale, const float* mask, std::int64_t step,
                                               float lse, float mean) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float p = vector_exp(scores[i] * scale + mask[i * step] - lse);
    scores[i] = p;
    slopes[i] = p * (slopes[i] - mean) * scale;
  }
}

PLIMSOLL_VECTORIZED void slope_range(const float* p, float* slopes, std::int64_t n, float scale,
                                     float mean) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) slopes[i] = p[i] * (slopes[i] - mean) * scale;
}

void clear(float* x, std::int64_t n) {
  std::memset(x, 0, static_cast<std::size_t>(n) * sizeof(float));
}

constexpr float kNothing = -std::numeric_limits<float>::infinity();

}  // namespace

float probabilities(float* scores, std::int64_t visible, std::int64_t n, float scale, MaskRow mask,
                    float* lse) {
  clear(scores + visible, n - visible);
  const float most = mask.data == nullptr
                         ? scaled_max(scores, visible, scale)
                         : masked_max(scores, visible, scale, mask.data, mask.step);
  // The loops above may pass over a NaN: then the row is NaN, and not one that sees nothing.
  if (most == kNothing && std::none_of(scores, scores + visible, [](float x) { return x != x; })) {
    clear(scores, visible);
    *lse = kNothing;
    return 0;
  }
  const float sum = row_exp(scores, scores, visible, most);
  *lse = most + std::log(sum);
  return sum;
}

void score_gradients(float* scores, float* slopes, std::int64_t visible, std::int64_t n,
                     float scale, MaskRow mask, float lse, float mean) {
  const std::int64_t seen = lse == kNothing ? 0 : visible;
  clear(scores + seen, n - seen);
  clear(slopes + seen, n - seen);
  if (std::abs(lse) > ops::kFarLse && seen > 0) {
    float again = 0;
    const float sum = probabilities(scores, seen, seen, scale, mask, &again);
    row_scale(scores, seen, 1 / sum);
    slope_range(scores, slopes, seen, scale, mean);
  } else if (mask.data == nullptr) {
    gradient_range(scores, slopes, seen, scale, lse, mean);
  } else {
    masked_gradient_range(scores, slopes, seen, scale, mask.data, mask.step, lse, mean);
  }
}

}  // namespace plimsoll::kernels
