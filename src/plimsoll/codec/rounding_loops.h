// The vectors of rounding by chance (small_float.h) and of int8, for whatever vectors the machine
// has.
//
// Each handles a prefix of the activation and returns its length; the caller does the rest with the
// scalar functions, which give the same bits. `seed` and the place in the activation decide every
// rounding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::codec {

// Where 8-bit integers with 16 bits behind the point come from: (x · kFixed · 127 / largest), to
// nearest.
inline constexpr float kFixed = 65536.0f;

enum class SmallForm { kFp16Form, kBf16Form, kE4m3Form, kE5m2Form };

// Two-byte and one-byte codes. `too_large` is set where a finite value has no code.
std::size_t vector_round(SmallForm form, const float* values, std::size_t count, std::uint32_t seed,
                         std::uint16_t* codes, bool& too_large);
std::size_t vector_round(SmallForm form, const float* values, std::size_t count, std::uint32_t seed,
                         std::uint8_t* codes, bool& too_large);
std::size_t vector_widen(SmallForm form, const std::uint16_t* codes, std::size_t count,
                         float* values);
std::size_t vector_widen(SmallForm form, const std::uint8_t* codes, std::size_t count,
                         float* values);

// The largest magnitude, as the bits of a float: above 0x7f7fffff one of them is not finite.
std::size_t vector_largest(const float* values, std::size_t count, std::uint32_t& magnitude);
// round_to_int8 of codec.cpp. `place` is that of the first value.
std::size_t vector_to_int8(const float* values, std::size_t count, float factor, std::uint32_t seed,
                           std::uint32_t place, std::int8_t* out);
std::size_t vector_from_int8(const std::int8_t* codes, std::size_t count, float scale,
                             float* values);

}  // namespace plimsoll::codec
