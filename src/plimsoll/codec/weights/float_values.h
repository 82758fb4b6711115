// The elements of a chunk as fp32 and back: what every lossy form computes with.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plimsoll/codec/rounding_loops.h"
#include "plimsoll/codec/small_float.h"
#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

inline bool is_floating(const ChunkShape& shape) {
  return shape.kind != WeightKind::kOther;
}

void to_floats(std::span<const std::byte> values, WeightKind kind, std::span<float> out);
// To nearest; a finite value that is too large becomes the largest there is.
void from_floats(std::span<const float> values, WeightKind kind, std::span<std::byte> out);

// Whether no finite value is beyond the range of fp32.
bool fits_floats(std::span<const std::byte> values, const ChunkShape& shape);
// The chunk's values as fp32: in place where they are, else converted into `scratch`.
std::span<const float> floats_of(std::span<const std::byte> values, const ChunkShape& shape,
                                 std::vector<float>& scratch);

// A codec of floats as a codec of any floating elements: decode(bytes, shape, floats).
template <auto kDecode>
bool decode_through_floats(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                           std::span<std::byte> values) {
  const std::size_t count = values.size() / shape.element_bytes;
  if (shape.kind == WeightKind::kF32) {
    return kDecode(bytes, shape, {reinterpret_cast<float*>(values.data()), count});
  }
  std::vector<float> scratch(count);
  if (!kDecode(bytes, shape, std::span<float>(scratch))) return false;
  from_floats(scratch, shape.kind, values);
  return true;
}
template <auto kEncode>
bool encode_through_floats(std::span<const std::byte> values, const ChunkShape& shape,
                           std::span<std::uint8_t> out, std::size_t& used) {
  if (!fits_floats(values, shape)) return false;
  std::vector<float> scratch;
  return kEncode(floats_of(values, shape, scratch), shape, out, used);
}

}  // namespace plimsoll::codec
