// The inner loops that are worth vectors, for whatever vectors the machine has (highway picks at
// run time). Each handles a prefix and returns its length; the caller does the rest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::codec {

std::size_t vector_positive_bits(const float* values, std::size_t count, std::uint8_t* mask);
std::size_t vector_inside_bits(const float* values, std::size_t count, float least, float most,
                               std::uint8_t* mask);
std::size_t vector_select(const float* values, const std::uint8_t* mask, std::size_t count,
                          float* out);

// For sparse.h. These handle whole vectors; stores may run over the end of what is asked for by up
// to 64 bytes, and so may loads.
struct Nonzeros {
  std::size_t count = 0;
  std::uint32_t any = 0;      // all bits that occur
  std::uint32_t largest = 0;  // magnitude
};
std::size_t vector_take_nonzero(const std::uint32_t* values, std::size_t count,
                                std::uint8_t* bitmap, std::uint32_t* nonzero, Nonzeros& found);
// Bits 0..23 of (magnitude - base) as bytes, bits 24..26 and the sign as bit planes; `outside` when
// a difference has higher bits. planes[3] is null when nothing is negative.
std::size_t vector_take_apart(const std::uint32_t* nonzero, std::size_t count, std::uint32_t base,
                              std::uint8_t* low, std::uint8_t* const* planes, bool& outside);
// Where the first difference with higher bits is, or where the vectors end.
std::size_t vector_first_outside(const std::uint32_t* nonzero, std::size_t count,
                                 std::uint32_t base);
// The way back.
std::size_t vector_put_together(const std::uint8_t* low, const std::uint8_t* const* planes,
                                std::size_t count, std::uint32_t base, std::uint32_t* nonzero);
// Each next value to where the bitmap has a bit, 0 elsewhere; `taken` counts them.
std::size_t vector_spread(const std::uint32_t* nonzero, const std::uint8_t* bitmap,
                          std::size_t count, std::uint32_t* out, std::size_t& taken);

}  // namespace plimsoll::codec
