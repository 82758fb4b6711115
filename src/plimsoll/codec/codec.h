// Codec: a smaller form for a map of fp32 values between two uses. Pure functions on spans, one
// table.
//
// Every codec promises the same, and one suite tests it on all of them:
//   1. encode() writes at most largest_bytes(count) and says how much; `false` means "would not
//   pay" or
//      "cannot represent", and nothing of the output may be used: the caller keeps the original;
//   2. decode(encode(x)) is x bit by bit if the codec is lossless, else within its error;
//   3. the same input and seed give the same bytes, on every machine;
//   4. decode() of any bytes whatever returns false or some values, and touches nothing else.
//
//   sparse   a bitmap of what is not zero, then those values: lossless; pays above some 4 % zeros
//   fp16, bf16, fp8-e4m3, fp8-e5m2    see small_float.h
//   int8     groups of 256 with one scale each, rounded up or down by chance so that the mean is
//   kept
//
// Masks and indices, which are not maps of fp32, are in bit_mask.h and narrow_index.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace plimsoll::codec {

struct Codec {
  std::string_view name;
  bool lossless;
  std::size_t (*largest_bytes)(std::size_t count);
  bool (*encode)(std::span<const float> values, std::uint64_t seed, std::span<std::uint8_t> out,
                 std::size_t& used);
  bool (*decode)(std::span<const std::uint8_t> bytes, std::span<float> values);
};

std::span<const Codec> codecs();
const Codec* find_codec(std::string_view name);

}  // namespace plimsoll::codec
