// Sparse: an activation of fp32 that is part zero, bit by bit, in blocks of at most kSparseBlock
// values.
//
//   ┌ header ┬ bitmap ┬ 3 or 4 bit planes ┬ 3 bytes a value ┬ escapes ┐
//   │ 12     │ n / 8  │ k / 8 each        │ 3 k             │ 8 e     │
//   └────────┴────────┴───────────────────┴─────────────────┴─────────┘
//
// The bitmap says which of the n values are not zero; those k follow. Their exponents lie close
// together (a ReLU's results span a dozen powers of two), so each is written as its distance from
// the block's base, the 16th power of two below its largest magnitude: 27 bits, of which 24 go to
// the bytes and 3 to bit planes, and a fourth plane for signs only where a value is negative. What
// lies outside that window is an escape: place and value in full.
//
//   half zero, all positive:   (1/32 + 1/2 · 27/32) = 0.45 of the plain form; a bitmap with plain
//                              floats behind it would be 0.53
//
// -0 is not zero here: its bits have to come back. A block that would not pay is kept plain.
// Vectors write and read the parts where they lie, so 64 bytes of padding end it.
// Both ways run at about the speed of memory on two cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::codec {

inline constexpr std::size_t kSparseBlock = 4096;

// For any count: all blocks kept plain.
std::size_t sparse_largest_bytes(std::size_t count);
// Bytes that `count` values take when `zeros` of them are zero, none is negative and few escape.
std::size_t sparse_bytes(std::size_t count, double zeros);

bool encode_sparse(std::span<const float> values, std::span<std::uint8_t> out, std::size_t& used);
bool decode_sparse(std::span<const std::uint8_t> bytes, std::span<float> values);

}  // namespace plimsoll::codec
