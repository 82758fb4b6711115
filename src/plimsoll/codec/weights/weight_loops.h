// The vectors of the weight forms, for whatever vectors the machine has (Highway's dynamic
// dispatch). Each handles a prefix and returns its length; the caller does the rest with the scalar
// functions, which give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::codec {

// Whole blocks of q8_0 and q4_0 (block_weights.h).
std::size_t vector_q8_0(const std::uint8_t* blocks, std::size_t count, float* values);
std::size_t vector_q4_0(const std::uint8_t* blocks, std::size_t count, float* values);

// Groups of 64 bf16 values of one block of exponent_code.h: 24 bytes of bit planes a group, a byte
// of sign and fraction a value, and escaped exponents, of which `used` were taken. Stops where more
// than `escapes_left` would be. `table` has 8 bytes, `count` is a multiple of 64.
std::size_t vector_exponents(const std::uint8_t* table, const std::uint8_t* planes,
                             const std::uint8_t* rest, const std::uint8_t* escapes,
                             std::size_t escapes_left, std::size_t count, std::uint16_t* values,
                             std::size_t& used);

// The byte planes of archive.h, for elements of 2 and 4 bytes that are turned: into planes[0] to
// planes[width - 1], and back.
std::size_t vector_split(std::size_t width, const std::uint8_t* values, std::size_t count,
                         std::uint8_t* const* planes);
std::size_t vector_join(std::size_t width, const std::uint8_t* const* planes, std::size_t count,
                        std::uint8_t* values);

// Each next value of 2 or 4 bytes to where the mask has a bit, 0 elsewhere; `used` were taken.
// Stops where more than `values_left` would be.
std::size_t vector_spread_values(std::size_t width, const std::uint8_t* mask,
                                 const std::uint8_t* nonzero, std::size_t values_left,
                                 std::size_t count, std::uint8_t* values, std::size_t& used);

}  // namespace plimsoll::codec
