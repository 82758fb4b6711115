// Codec: a smaller form for an activation between two uses. Pure functions on spans, one table.
//
// Every codec promises the same, and one suite tests it on all of them:
//   1. encode() writes at most largest_bytes(count) and says how much; `false` means that the
//      output is too small or the values cannot be represented, and nothing of the output may be
//      used: the caller keeps the original;
//   2. decode(encode(x)) is x bit by bit if the codec is lossless, else within its error;
//   3. the same input and seed give the same bytes, on every machine;
//   4. decode() of any bytes whatever returns false or some values, and touches nothing else.
//
//   sparse    fp32, lossless: see sparse.h
//   crumbs    2-bit, lossless: indices below 4 (which of a 2x2 window won)
//   nibbles   4-bit, lossless: indices below 16 (of a 3x3 window)
//   fp16, bf16, fp8-e4m3, fp8-e5m2    fp32, lossy: see small_float.h
//   int8      fp32, lossy: groups of 256, each with the scale that makes its largest value 127
//
// Lossy codecs round up or down by chance, so that the mean is kept; the seed decides. One that
// meets a finite value it has no code for refuses the values.
//
// An activation is given as bytes, aligned to its elements. The 1-bit form of ReLU's sign is no
// codec: a mask is a value of the graph (rewrite/keep_masks.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace plimsoll::codec {

struct Codec {
  std::string_view name;
  bool lossless;
  std::size_t element_bytes;  // 4: fp32; 1: indices in bytes
  std::size_t (*largest_bytes)(std::size_t count);
  bool (*encode)(std::span<const std::byte> values, std::uint64_t seed, std::span<std::uint8_t> out,
                 std::size_t& used);
  bool (*decode)(std::span<const std::uint8_t> bytes, std::span<std::byte> values);
};

std::span<const Codec> codecs();
const Codec* find_codec(std::string_view name);

}  // namespace plimsoll::codec
