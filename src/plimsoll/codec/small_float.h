// Reduced precision, value by value: fp16, bf16, fp8 in its two shapes.
//
//            sign exponent fraction   largest    what does not fit
//   fp16       1      5       10      65504      infinity
//   bf16       1      8        7      3.4e38     infinity
//   e5m2       1      5        2      57344      infinity
//   e4m3       1      4        3      448        448 (it has no infinity; training saturates)
//
// Rounding is to nearest, ties to even; subnormals are kept; a NaN stays a NaN. Decoding is exact.
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
constexpr SmallFloat kE5m2{5, 2, true};
constexpr SmallFloat kE4m3{4, 3, false};

template <SmallFloat F>
constexpr std::uint32_t to_small(float value) {
  constexpr int kBias = (1 << (F.exponent_bits - 1)) - 1;
  constexpr int kShift = 23 - F.fraction_bits;
  constexpr std::uint32_t kTop = ((1u << F.exponent_bits) - 1) << F.fraction_bits;
  constexpr std::uint32_t kLargest =
      F.has_infinity ? kTop - 1 : kTop | ((1u << F.fraction_bits) - 2);
  constexpr std::uint32_t kOver = F.has_infinity ? kTop : kLargest;
  constexpr std::uint32_t kNan = kTop | ((1u << F.fraction_bits) - 1);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 << (F.exponent_bits + F.fraction_bits);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | kNan;
  if (magnitude == 0x7f800000u) return sign | kOver;
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;
  std::uint32_t fraction = magnitude & 0x7fffffu;
  std::uint32_t code = 0;
  int drop = kShift;
  if (exponent <= 0) {
    drop = kShift + 1 - exponent;
    if (drop > 25) return sign;
    fraction |= magnitude >> 23 != 0 ? 0x800000u : 0u;
    code = fraction >> drop;
  } else {
    code = (static_cast<std::uint32_t>(exponent) << F.fraction_bits) | (fraction >> drop);
  }
  const std::uint32_t rest = fraction & ((1u << drop) - 1);
  const std::uint32_t half = 1u << (drop - 1);
  code += rest > half || (rest == half && (code & 1) != 0);
  return sign | (code > kLargest || exponent > (1 << F.exponent_bits) ? kOver : code);
}

template <SmallFloat F>
constexpr float from_small(std::uint32_t code) {
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
