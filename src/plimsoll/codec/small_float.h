// Reduced precision, value by value: fp16, bf16, fp8 in its two shapes.
//
//            sign exponent fraction   largest
//   fp16       1      5       10      65504
//   bf16       1      8        7      3.4e38
//   e5m2       1      5        2      57344
//   e4m3       1      4        3      448, and no infinity
//
// Rounding is by chance, up or down in proportion, so that the mean of what is stored is the value:
// a gradient that is linear in a stored activation has no bias, however few bits it waits in.
//
//   0.3 between 0.28125 and 0.3125 (e4m3):   0.3125 in 60 of 100 places, 0.28125 in 40
//
// The chance is a hash of seed and place, never a stream of random numbers: parts of an activation
// may be rounded in any order, by any number of threads, with the same bits. What a form represents
// stays exactly that, zeros, infinities and NaN among it; a finite value above the largest gives
// kTooLarge, so that whoever stores it keeps the original: an infinity of our own making would ruin
// the run. Below 2^-8 of the smallest subnormal, values become zero. Decoding is exact.
#pragma once

#include <bit>
#include <cstdint>

namespace plimsoll::codec {

struct SmallFloat {
  int exponent_bits;
  int fraction_bits;
  bool has_infinity;
};
constexpr SmallFloat kFp16{5, 10, true};
constexpr SmallFloat kBf16{8, 7, true};
constexpr SmallFloat kE5m2{5, 2, true};
constexpr SmallFloat kE4m3{4, 3, false};

inline constexpr std::uint32_t kTooLarge = 0xffffffffu;

// 32 bits by which the value at `place` is rounded: any seed, any place, all alike. The multipliers
// are those of a mixer with low bias, cheap in vectors.
constexpr std::uint32_t chance_at(std::uint32_t seed, std::uint32_t place) {
  std::uint32_t bits = seed + place * 0x9e3779b9u;
  bits = (bits ^ (bits >> 16)) * 0x21f0aaadu;
  bits = (bits ^ (bits >> 15)) * 0xd35a2d97u;
  return bits ^ (bits >> 15);
}

// Codes as numbers that a scalar and a vector loop need.
template <SmallFloat F>
struct SmallCodes {
  static constexpr int kBias = (1 << (F.exponent_bits - 1)) - 1;
  static constexpr int kShift = 23 - F.fraction_bits;
  static constexpr std::uint32_t kTop = ((1u << F.exponent_bits) - 1) << F.fraction_bits;
  static constexpr std::uint32_t kLargest =
      F.has_infinity ? kTop - 1 : kTop | ((1u << F.fraction_bits) - 2);
  static constexpr std::uint32_t kNan = kTop | ((1u << F.fraction_bits) - 1);
  // Magnitudes of fp32 from here on have an exponent of their own in the small form. bf16 has all
  // exponents of fp32.
  static constexpr std::uint32_t kNormal =
      F.exponent_bits == 8 ? 0u : static_cast<std::uint32_t>(128 - kBias) << 23;
};

// The code of a value, or kTooLarge; round(whole, drop) is `whole` without its last `drop` bits.
template <SmallFloat F, typename Round>
constexpr std::uint32_t rounded_code(float value, Round round) {
  using Codes = SmallCodes<F>;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 << (F.exponent_bits + F.fraction_bits);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | Codes::kNan;
  if (magnitude == 0x7f800000u) return F.has_infinity ? sign | Codes::kTop : kTooLarge;
  std::uint32_t code = 0;
  if (magnitude >= Codes::kNormal) {
    code = round(magnitude, Codes::kShift) -
           (static_cast<std::uint32_t>(127 - Codes::kBias) << F.fraction_bits);
  } else {
    const int exponent = static_cast<int>(magnitude >> 23);
    const int drop = Codes::kShift + 128 - Codes::kBias - exponent;
    if (drop > 31) return sign;
    const std::uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
    code = round(fraction, drop);
  }
  return code > Codes::kLargest ? kTooLarge : sign | code;
}

// The code that `chance` (32 bits, all alike) rounds the value to.
template <SmallFloat F>
constexpr std::uint32_t to_small(float value, std::uint32_t chance) {
  return rounded_code<F>(value, [chance](std::uint32_t whole, int drop) {
    return (whole + (chance >> (32 - drop))) >> drop;
  });
}

// The nearest code, ties to even.
template <SmallFloat F>
constexpr std::uint32_t nearest_small(float value) {
  return rounded_code<F>(value, [](std::uint32_t whole, int drop) {
    return (whole + (1u << (drop - 1)) - 1 + ((whole >> drop) & 1)) >> drop;
  });
}

template <SmallFloat F>
constexpr float from_small(std::uint32_t code) {
  if constexpr (F.exponent_bits == 8) return std::bit_cast<float>(code << 16);
  constexpr int kBias = (1 << (F.exponent_bits - 1)) - 1;
  constexpr std::uint32_t kFractions = (1u << F.fraction_bits) - 1;
  const std::uint32_t sign = (code >> (F.exponent_bits + F.fraction_bits)) << 31;
  const std::uint32_t exponent = (code >> F.fraction_bits) & ((1u << F.exponent_bits) - 1);
  const std::uint32_t fraction = code & kFractions;
  const bool top = exponent == (1u << F.exponent_bits) - 1;
  if (top && F.has_infinity)
    return std::bit_cast<float>(sign | 0x7f800000u | (fraction << (23 - F.fraction_bits)));
  if (top && fraction == kFractions) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (exponent == 0) {
    const float unit =
        std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - kBias - F.fraction_bits) << 23);
    const float value = static_cast<float>(fraction) * unit;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent + 127 - static_cast<std::uint32_t>(kBias);
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << (23 - F.fraction_bits)));
}

}  // namespace plimsoll::codec
