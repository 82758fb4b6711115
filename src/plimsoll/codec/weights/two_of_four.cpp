#include "plimsoll/codec/weights/two_of_four.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/row_products.h"
#include "plimsoll/codec/weights/sparse_loops.h"
#include "plimsoll/codec/weights/stored_values.h"

namespace plimsoll::codec {
namespace {

bool takes_two_of_four(const ChunkShape& shape) {
  return is_floating(shape) && shape.element_bytes <= 8;
}
std::size_t two_of_four_bytes(std::size_t count, const ChunkShape& shape) {
  const std::size_t groups = (count + 3) / 4;
  return (groups + 1) / 2 + groups * 2 * shape.element_bytes;
}
bool encode_two_of_four(std::span<const std::byte> values, const ChunkShape& shape,
                        std::span<std::uint8_t> out, std::size_t& used) {
  const std::size_t width = shape.element_bytes;
  const std::size_t count = values.size() / width;
  const std::size_t groups = (count + 3) / 4;
  used = two_of_four_bytes(count, shape);
  if (out.size() < used) return false;
  std::vector<float> scratch;
  const std::span<const float> floats = floats_of(values, shape, scratch);
  std::fill_n(out.data(), used, std::uint8_t{0});
  std::uint8_t* to = out.data() + (groups + 1) / 2;
  for (std::size_t g = 0; g < groups; ++g) {
    // fp64 values that fp32 cannot tell apart are told apart by their place.
    float sizes[4] = {-1, -1, -1, -1};
    int not_finite = 0;
    for (std::size_t j = 0; j < 4 && 4 * g + j < count; ++j) {
      const float value = floats[4 * g + j];
      not_finite += std::isfinite(value) ? 0 : 1;
      sizes[j] = std::isnan(value) ? INFINITY : std::fabs(value);
      // A zero with a sign is worth more than one without: lossless where only two have any bits.
      if (sizes[j] == 0 && is_zero(values.data() + (4 * g + j) * width, width)) sizes[j] = -0.5f;
    }
    if (not_finite > 2) return false;
    unsigned first = 0;
    for (unsigned j = 1; j < 4; ++j)
      if (sizes[j] > sizes[first]) first = j;
    unsigned second = first == 0 ? 1 : 0;
    for (unsigned j = 0; j < 4; ++j)
      if (j != first && sizes[j] > sizes[second]) second = j;
    if (second < first) std::swap(first, second);
    out[g / 2] = static_cast<std::uint8_t>(out[g / 2] | ((first | second << 2) << (g % 2 * 4)));
    for (const unsigned j : {first, second}) {
      if (4 * g + j < count) std::memcpy(to, values.data() + (4 * g + j) * width, width);
      to += width;
    }
  }
  return true;
}
bool decode_two_of_four(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                        std::span<std::byte> values) {
  const std::size_t width = shape.element_bytes;
  const std::size_t count = values.size() / width;
  const std::size_t groups = (count + 3) / 4;
  if (bytes.size() != two_of_four_bytes(count, shape)) return false;
  const std::uint8_t* from = bytes.data() + (groups + 1) / 2;
  std::fill(values.begin(), values.end(), std::byte{0});
  for (std::size_t g = 0; g < groups; ++g) {
    const unsigned both = (bytes[g / 2] >> (g % 2 * 4)) & 15u;
    const unsigned first = both & 3u;
    const unsigned second = both >> 2;
    if (first >= second) return false;
    for (const unsigned j : {first, second}) {
      if (4 * g + j < count) std::memcpy(values.data() + (4 * g + j) * width, from, width);
      from += width;
    }
  }
  return true;
}

// Of each four the first place must be below the second: of all nibbles of a word at once, whether
// its lower two bits are less than its upper two.
bool are_pairs(const std::uint8_t* places, std::size_t bytes) {
  constexpr std::uint64_t kTop = 0x2222222222222222;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t first = 0x4444444444444444;
    std::memcpy(&first, places + i, std::min<std::size_t>(8, bytes - i));
    const std::uint64_t second = first >> 2;
    const std::uint64_t above = second & ~first;
    wrong |= ~(above | (~(first ^ second) & above << 1)) & kTop;
  }
  return wrong == 0;
}

// Rows that begin with a byte of places, as those of most matrices do.
bool multiply_rows_of_pairs(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                            std::size_t count, Product product, const float* in, float* out) {
  const std::uint8_t* values = bytes.data() + count / 8;
  if (!are_pairs(bytes.data(), count / 8)) return false;
  const std::size_t columns = shape.columns;
  const std::size_t first_row = shape.begin / columns;
  for (std::size_t place = 0; place < count;) {
    const std::size_t row = (shape.begin + place) / columns;
    const std::size_t column = (shape.begin + place) % columns;
    const std::size_t length = std::min(columns - column, count - place);
    const PairRow pairs{bytes.data() + place / 8, values + place / 2 * shape.element_bytes, length};
    if (product == Product::kRows) {
      out[row - first_row] += pairs_dot(shape.kind, pairs, in + column);
    } else {
      pairs_axpy(shape.kind, pairs, in[row], out + column);
    }
    place += length;
  }
  return true;
}

bool multiply_two_of_four(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                          std::size_t count, Product product, const float* in, float* out) {
  return by_kind(shape, [&]<WeightKind kKind>() {
    const std::size_t groups = (count + 3) / 4;
    if (bytes.size() != two_of_four_bytes(count, shape)) return false;
    if (shape.columns % 8 == 0 && shape.begin % 8 == 0 && count % 8 == 0)
      return multiply_rows_of_pairs(bytes, shape, count, product, in, out);
    const std::uint8_t* from = bytes.data() + (groups + 1) / 2;
    SparseSums sums(shape, product, in, out);
    for (std::size_t g = 0; g < groups; ++g) {
      const unsigned both = (bytes[g / 2] >> (g % 2 * 4)) & 15u;
      const unsigned first = both & 3u;
      const unsigned second = both >> 2;
      if (first >= second) return false;
      for (const unsigned j : {first, second}) {
        if (4 * g + j < count) sums.add(4 * g + j, stored_value<kKind>(from));
        from += shape.element_bytes;
      }
    }
    return true;
  });
}

}  // namespace

const WeightCodec kTwoOfFourWeights{"2:4",
                                    false,
                                    takes_two_of_four,
                                    two_of_four_bytes,
                                    encode_two_of_four,
                                    decode_two_of_four,
                                    multiply_two_of_four};

}  // namespace plimsoll::codec
