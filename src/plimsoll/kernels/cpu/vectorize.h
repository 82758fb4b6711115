// How the inner loops become vector code, and the functions they may call.
//
// PLIMSOLL_VECTORIZED in front of a function makes the compiler build it three times, for AVX-512,
// AVX2 and plain x86-64, and pick one at start. Such a function takes contiguous ranges and is
// called *from* a parallel loop: the body that OpenMP outlines would not inherit the attribute.
// What it calls must be inlined, hence the math below, branch-free so that it vectorises.
// Sanitizers do not work with the run-time choice and clang does not take it on templates: there
// the attribute is empty.
//
// Accuracy (tests hold them to it): exp, tanh and erf within 2e-7 relative of the exact value over
// all floats; exp of less than -87.3 is 0 and of more than 88.7 infinite, NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "plimsoll/base/inline.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(PLIMSOLL_SANITIZED) && defined(__OPTIMIZE__)
#define PLIMSOLL_VECTORIZED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PLIMSOLL_VECTORIZED
#endif

namespace plimsoll::kernels {

// A bfloat16 in memory; arithmetic is done in float.
struct Bf16 {
  std::uint16_t bits = 0;
};

PLIMSOLL_INLINE float load(float x) {
  return x;
}
PLIMSOLL_INLINE float load(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
PLIMSOLL_INLINE void store(float& to, float x) {
  to = x;
}
// To nearest, ties to even; a NaN stays one.
PLIMSOLL_INLINE void store(Bf16& to, float x) {
  const auto pattern = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (pattern + 0x7fffU + ((pattern >> 16) & 1U)) >> 16;
  to.bits = static_cast<std::uint16_t>(
      (pattern & 0x7fffffffU) > 0x7f800000U ? (pattern >> 16) | 0x40U : rounded);
}

// 2^k * e^r with k = round(x / ln 2); e^r = 1 + r + r^2 P(r) with P fitted (minimax, 3e-9).
PLIMSOLL_INLINE float vector_exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float bounded = x > 89.0F ? 89.0F : (x < -88.0F ? -88.0F : x);
  const float shifted = bounded * 1.44269504F + kRound;
  const float k = shifted - kRound;
  const float r = (bounded - k * 0.693145752F) - k * 1.42860677e-6F;
  float p = 0.00139504881F;
  p = p * r + 0.00836888768F;
  p = p * r + 0.0416662058F;
  p = p * r + 0.166665189F;
  p = p * r + 0.500000010F;
  const float e = p * r * r + r + 1.0F;
  // In two halves: 2^k itself may leave the range of normal floats.
  const std::int32_t exponent =
      std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRound);
  const std::int32_t half = exponent >> 1;
  const float low = std::bit_cast<float>((half + 127) << 23);
  const float high = std::bit_cast<float>((exponent - half + 127) << 23);
  const float y = e * low * high;
  return x < -87.3F ? 0.0F : (x > 88.72284F ? std::numeric_limits<float>::infinity() : y);
}

PLIMSOLL_INLINE float vector_sigmoid(float x) {
  return 1.0F / (1.0F + vector_exp(-x));
}

// Near 0 an odd polynomial, elsewhere 1 - 2 / (e^2|x| + 1).
PLIMSOLL_INLINE float vector_tanh(float x) {
  const float a = std::abs(x);
  const float t = x * x;
  float p = -0.00552863436F;
  p = p * t + 0.0204833169F;
  p = p * t - 0.0536929683F;
  p = p * t + 0.133308998F;
  p = p * t - 0.333332629F;
  const float small = p * t * a + a;
  const float large = 1.0F - 2.0F / (vector_exp(2.0F * a) + 1.0F);
  return std::copysign(a < 0.625F ? small : large, x);
}

// Below 1 an odd polynomial, above it 1 - e^(-x^2) Q(1 / (1 + x/2)).
PLIMSOLL_INLINE float vector_erf(float x) {
  const float a = std::abs(x);
  const float s = x * x;
  float p = 7.85389676e-05F;
  p = p * s - 0.000801020523F;
  p = p * s + 0.00518832915F;
  p = p * s - 0.0268538128F;
  p = p * s + 0.112835852F;
  p = p * s - 0.376126258F;
  p = p * s + 1.12837917F;
  const float t = 1.0F / (1.0F + 0.5F * a);
  float q = 0.116694885F;
  q = q * t - 0.461842923F;
  q = q * t + 0.549270144F;
  q = q * t - 0.0920942501F;
  q = q * t + 0.342175109F;
  q = q * t + 0.261320620F;
  q = q * t + 0.284652007F;
  q = q * t - 0.000136555320F;
  const float large = 1.0F - vector_exp(-s) * q;
  return a < 1.0F ? p * x : std::copysign(large, x);
}

}  // namespace plimsoll::kernels
