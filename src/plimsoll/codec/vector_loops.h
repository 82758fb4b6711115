// The inner loops that are worth vectors, for whatever vectors the machine has (highway picks at
// run time). Each handles a prefix and returns its length, a multiple of 8; the caller does the
// rest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::codec {

std::size_t vector_positive_bits(const float* values, std::size_t count, std::uint8_t* mask);
std::size_t vector_select(const float* values, const std::uint8_t* mask, std::size_t count,
                          float* out);
std::size_t vector_to_bf16(const float* values, std::size_t count, std::uint16_t* out);
std::size_t vector_from_bf16(const std::uint16_t* values, std::size_t count, float* out);

}  // namespace plimsoll::codec
