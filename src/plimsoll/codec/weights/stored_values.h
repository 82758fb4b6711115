// Values as sparse forms store them: the tensor's own bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plimsoll/codec/small_float.h"
#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

// All its bits; -0 is none.
inline bool is_zero(const std::byte* value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    if (value[i] != std::byte{0}) return false;
  return true;
}

// A stored value as a float; not of fp64.
template <WeightKind kKind>
float stored_value(const std::uint8_t* at) {
  if constexpr (kKind == WeightKind::kF32) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  } else {
    std::uint16_t code;
    std::memcpy(&code, at, 2);
    return kKind == WeightKind::kF16 ? from_small<kFp16>(code) : from_small<kBf16>(code);
  }
}
// Calls multiply<kind>(...) for the kind of the shape; false: it has no product.
template <typename Multiply>
bool by_kind(const ChunkShape& shape, Multiply multiply) {
  switch (shape.kind) {
    case WeightKind::kF32:
      return multiply.template operator()<WeightKind::kF32>();
    case WeightKind::kF16:
      return multiply.template operator()<WeightKind::kF16>();
    case WeightKind::kBF16:
      return multiply.template operator()<WeightKind::kBF16>();
    default:
      return false;
  }
}

}  // namespace plimsoll::codec
