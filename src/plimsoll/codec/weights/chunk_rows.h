// The rows of a tensor that a chunk holds, whole or in part.
//
//   columns 5, chunk of 8 values from place 3:   . . . a a | b b b b b | c . . . .
//                                                      2        5        1
#pragma once

#include <algorithm>
#include <cstddef>

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

// Of a row longer than this each so many values count as a row of their own, so that a place in it
// fits 16 bits.
inline constexpr std::size_t kLongestRow = 65536;

// Calls visit(first, length) for each, places counted in the chunk; stops where it returns false.
template <typename Visit>
bool for_rows(std::size_t count, const ChunkShape& shape, Visit visit) {
  const std::size_t columns = std::max<std::size_t>(shape.columns, 1);
  std::size_t at = 0;
  while (at < count) {
    const std::size_t left = columns - (shape.begin + at) % columns;
    const std::size_t length = std::min({left, count - at, kLongestRow});
    if (!visit(at, length)) return false;
    at += length;
  }
  return true;
}

inline std::size_t rows_of(std::size_t count, const ChunkShape& shape) {
  if (count > 0 && shape.columns > 0 && shape.columns <= kLongestRow)
    return (shape.begin + count - 1) / shape.columns - shape.begin / shape.columns + 1;
  std::size_t rows = 0;
  for_rows(count, shape, [&](std::size_t, std::size_t) { return ++rows > 0; });
  return rows;
}

}  // namespace plimsoll::codec
