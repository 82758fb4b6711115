#include "plimsoll/codec/weights/sparse_weights.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "plimsoll/codec/weights/chunk_rows.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/row_products.h"
#include "plimsoll/codec/weights/sparse_loops.h"
#include "plimsoll/codec/weights/stored_values.h"
#include "plimsoll/codec/weights/weight_loops.h"

namespace plimsoll::codec {
namespace {

using Values = std::span<const std::byte>;

bool any_element(const ChunkShape& shape) {
  return shape.element_bytes == 1 || shape.element_bytes == 2 || shape.element_bytes == 4 ||
         shape.element_bytes == 8;
}
std::vector<std::uint32_t> places_of_nonzero(Values values, std::size_t width) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < values.size() / width; ++i)
    if (!is_zero(values.data() + i * width, width)) out.push_back(static_cast<std::uint32_t>(i));
  return out;
}
void put_values(Values values, std::size_t width, std::span<const std::uint32_t> places,
                std::uint8_t* to) {
  for (const std::uint32_t place : places) {
    std::memcpy(to, values.data() + place * width, width);
    to += width;
  }
}

// ---- bitmask

std::size_t bitmask_bytes(std::size_t count, const ChunkShape& shape) {
  return (count + 7) / 8 + count * shape.element_bytes;
}
bool encode_bitmask(Values values, const ChunkShape& shape, std::span<std::uint8_t> out,
                    std::size_t& used) {
  const std::size_t width = shape.element_bytes;
  const std::size_t mask = (values.size() / width + 7) / 8;
  const auto places = places_of_nonzero(values, width);
  used = mask + places.size() * width;
  if (out.size() < used) return false;
  std::fill_n(out.data(), mask, std::uint8_t{0});
  for (const std::uint32_t place : places)
    out[place / 8] = static_cast<std::uint8_t>(out[place / 8] | (1u << (place % 8)));
  put_values(values, width, places, out.data() + mask);
  return true;
}
template <std::size_t kWidth>
bool spread_bits(std::span<const std::uint8_t> bytes, std::span<std::byte> values) {
  const std::size_t count = values.size() / kWidth;
  const std::size_t mask = (count + 7) / 8;
  if (bytes.size() < mask) return false;
  if (count % 8 != 0 && (bytes[mask - 1] >> (count % 8)) != 0) return false;
  if ((bytes.size() - mask) % kWidth != 0) return false;
  const std::uint8_t* nonzero = bytes.data() + mask;
  const std::size_t stored = (bytes.size() - mask) / kWidth;
  std::size_t used = 0;
  std::size_t at = 0;
  if constexpr (kWidth == 2 || kWidth == 4)
    at = vector_spread_values(kWidth, bytes.data(), nonzero, stored, count,
                              reinterpret_cast<std::uint8_t*>(values.data()), used);
  std::memset(values.data() + at * kWidth, 0, (count - at) * kWidth);
  for (std::size_t i = at / 8; i < mask; ++i) {
    for (unsigned bits = bytes[i]; bits != 0; bits &= bits - 1) {
      if (used == stored) return false;
      const std::size_t place = 8 * i + static_cast<std::size_t>(std::countr_zero(bits));
      std::memcpy(values.data() + place * kWidth, nonzero + kWidth * used++, kWidth);
    }
  }
  return used == stored;
}
bool decode_bitmask(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                    std::span<std::byte> values) {
  if (values.empty()) return bytes.empty();
  switch (shape.element_bytes) {
    case 1:
      return spread_bits<1>(bytes, values);
    case 2:
      return spread_bits<2>(bytes, values);
    case 4:
      return spread_bits<4>(bytes, values);
    case 8:
      return spread_bits<8>(bytes, values);
    default:
      return false;
  }
}

std::size_t bits_set(const std::uint8_t* mask, std::size_t bytes) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, mask + i, std::min<std::size_t>(8, bytes - i));
    out += static_cast<std::size_t>(std::popcount(bits));
  }
  return out;
}
// Rows that begin with a byte of the mask, as those of most matrices do.
bool multiply_rows_of_bits(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                           std::size_t count, Product product, const float* in, float* out) {
  const std::uint8_t* values = bytes.data() + count / 8;
  std::size_t left = (bytes.size() - count / 8) / shape.element_bytes;
  if (bits_set(bytes.data(), count / 8) != left) return false;
  const std::size_t first_row = shape.begin / shape.columns;
  for (std::size_t place = 0; place < count;) {
    const std::size_t row = (shape.begin + place) / shape.columns;
    const std::size_t column = (shape.begin + place) % shape.columns;
    const std::size_t length = std::min(shape.columns - column, count - place);
    const MaskRow bits{bytes.data() + place / 8, values, left, length};
    std::size_t used = 0;
    if (product == Product::kRows) {
      const MaskDot dot = mask_dot(shape.kind, bits, in + column);
      out[row - first_row] += dot.sum;
      used = dot.used;
    } else {
      used = mask_axpy(shape.kind, bits, in[row], out + column);
    }
    values += used * shape.element_bytes;
    left -= used;
    place += length;
  }
  return true;
}

bool multiply_bitmask(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                      std::size_t count, Product product, const float* in, float* out) {
  return by_kind(shape, [&]<WeightKind kKind>() {
    const std::size_t width = shape.element_bytes;
    const std::size_t mask = (count + 7) / 8;
    if (bytes.size() < mask || (bytes.size() - mask) % width != 0) return false;
    if (shape.columns % 8 == 0 && shape.begin % 8 == 0 && count % 8 == 0)
      return multiply_rows_of_bits(bytes, shape, count, product, in, out);
    if (count % 8 != 0 && (bytes[mask - 1] >> (count % 8)) != 0) return false;
    std::size_t left = (bytes.size() - mask) / width;
    const std::uint8_t* next = bytes.data() + mask;
    SparseSums sums(shape, product, in, out);
    for (std::size_t i = 0; i < mask; i += 8) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, bytes.data() + i, std::min<std::size_t>(8, mask - i));
      const auto taken = static_cast<std::size_t>(std::popcount(bits));
      if (taken > left) return false;
      left -= taken;
      for (; bits != 0; bits &= bits - 1, next += width)
        sums.add(8 * i + static_cast<std::size_t>(std::countr_zero(bits)),
                 stored_value<kKind>(next));
    }
    return left == 0;
  });
}

// ---- coo

std::size_t coo_bytes(std::size_t count, const ChunkShape& shape) {
  return count * (4 + shape.element_bytes);
}
bool encode_coo(Values values, const ChunkShape& shape, std::span<std::uint8_t> out,
                std::size_t& used) {
  const auto places = places_of_nonzero(values, shape.element_bytes);
  used = places.size() * (4 + shape.element_bytes);
  if (out.size() < used) return false;
  if (places.empty()) return true;
  std::memcpy(out.data(), places.data(), places.size() * 4);
  put_values(values, shape.element_bytes, places, out.data() + places.size() * 4);
  return true;
}
bool decode_coo(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                std::span<std::byte> values) {
  const std::size_t width = shape.element_bytes;
  if (bytes.size() % (4 + width) != 0) return false;
  const std::size_t nonzero = bytes.size() / (4 + width);
  const std::size_t count = values.size() / width;
  std::fill(values.begin(), values.end(), std::byte{0});
  for (std::size_t i = 0; i < nonzero; ++i) {
    std::uint32_t place;
    std::memcpy(&place, bytes.data() + 4 * i, 4);
    if (place >= count) return false;
    std::memcpy(values.data() + place * width, bytes.data() + 4 * nonzero + i * width, width);
  }
  return true;
}

bool multiply_coo(std::span<const std::uint8_t> bytes, const ChunkShape& shape, std::size_t count,
                  Product product, const float* in, float* out) {
  return by_kind(shape, [&]<WeightKind kKind>() {
    const std::size_t width = shape.element_bytes;
    if (bytes.size() % (4 + width) != 0) return false;
    const std::size_t nonzero = bytes.size() / (4 + width);
    SparseSums sums(shape, product, in, out);
    for (std::size_t i = 0; i < nonzero; ++i) {
      std::uint32_t place;
      std::memcpy(&place, bytes.data() + 4 * i, 4);
      if (place >= count) return false;
      sums.add(place, stored_value<kKind>(bytes.data() + 4 * nonzero + i * width));
    }
    return true;
  });
}

// ---- csr

enum class Columns : std::uint8_t { kSixteenBits, kDistances };
constexpr std::size_t kSkip = 255;

std::size_t csr_bytes(std::size_t count, const ChunkShape& shape) {
  return 1 + 4 * rows_of(count, shape) + count * (2 + shape.element_bytes);
}

struct CsrRows {
  std::vector<std::uint32_t> counts;
  std::vector<std::uint16_t> columns;
  std::vector<std::uint8_t> distances;
};
CsrRows csr_rows(std::span<const std::uint32_t> places, std::size_t count,
                 const ChunkShape& shape) {
  CsrRows out;
  std::size_t i = 0;
  for_rows(count, shape, [&](std::size_t first, std::size_t length) {
    const std::size_t begin = i;
    std::size_t next = first;  // the place that a distance of 0 means
    for (; i < places.size() && places[i] < first + length; ++i) {
      out.columns.push_back(static_cast<std::uint16_t>(places[i] - first));
      std::size_t distance = places[i] - next;
      for (; distance >= kSkip; distance -= kSkip)
        out.distances.push_back(static_cast<std::uint8_t>(kSkip));
      out.distances.push_back(static_cast<std::uint8_t>(distance));
      next = places[i] + 1;
    }
    out.counts.push_back(static_cast<std::uint32_t>(i - begin));
    return true;
  });
  return out;
}
bool encode_csr(Values values, const ChunkShape& shape, std::span<std::uint8_t> out,
                std::size_t& used) {
  const auto places = places_of_nonzero(values, shape.element_bytes);
  const CsrRows rows = csr_rows(places, values.size() / shape.element_bytes, shape);
  const bool distances = rows.distances.size() < 2 * rows.columns.size();
  const std::size_t where = distances ? rows.distances.size() : 2 * rows.columns.size();
  used = 1 + 4 * rows.counts.size() + where + places.size() * shape.element_bytes;
  if (out.size() < used) return false;
  out[0] = static_cast<std::uint8_t>(distances ? Columns::kDistances : Columns::kSixteenBits);
  std::uint8_t* to = out.data() + 1;
  if (!rows.counts.empty()) std::memcpy(to, rows.counts.data(), 4 * rows.counts.size());
  to += 4 * rows.counts.size();
  const void* from = distances ? static_cast<const void*>(rows.distances.data())
                               : static_cast<const void*>(rows.columns.data());
  if (where > 0) std::memcpy(to, from, where);
  put_values(values, shape.element_bytes, places, to + where);
  return true;
}

// Reads the places of one row's values, one call each; nothing when the bytes end or leave the row.
class ColumnReader {
 public:
  ColumnReader(Columns form, std::span<const std::uint8_t> bytes) : form_(form), bytes_(bytes) {}
  void begin_row() { next_ = 0; }
  bool read(std::size_t length, std::size_t& column) {
    if (form_ == Columns::kSixteenBits) {
      if (bytes_.size() - at_ < 2) return false;
      std::uint16_t two;
      std::memcpy(&two, bytes_.data() + at_, 2);
      at_ += 2;
      column = two;
      return column < length;
    }
    for (;;) {
      if (at_ == bytes_.size()) return false;
      const std::size_t step = bytes_[at_++];
      next_ += step;
      if (next_ >= length) return false;
      if (step != kSkip) break;
    }
    column = next_++;
    return true;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  Columns form_;
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
};

// visit(place, value's bytes) for each value that is stored, in order.
template <typename Visit>
bool for_csr(std::span<const std::uint8_t> bytes, const ChunkShape& shape, std::size_t count,
             Visit visit) {
  const std::size_t width = shape.element_bytes;
  const std::size_t rows = rows_of(count, shape);
  if (bytes.size() < 1 + 4 * rows || bytes[0] > 1) return false;
  const auto counts = bytes.subspan(1, 4 * rows);
  const auto rest = bytes.subspan(1 + 4 * rows);
  std::uint64_t nonzero = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    std::uint32_t in_row;
    std::memcpy(&in_row, counts.data() + 4 * r, 4);
    nonzero += in_row;
  }
  if (nonzero > count || nonzero * width > rest.size()) return false;
  const auto stored = rest.subspan(rest.size() - nonzero * width);
  ColumnReader columns(static_cast<Columns>(bytes[0]), rest.first(rest.size() - stored.size()));
  const std::uint8_t* from = stored.data();
  std::size_t r = 0;
  const bool good = for_rows(count, shape, [&](std::size_t first, std::size_t length) {
    std::uint32_t in_row;
    std::memcpy(&in_row, counts.data() + 4 * r++, 4);
    columns.begin_row();
    for (std::uint32_t i = 0; i < in_row; ++i, from += width) {
      std::size_t column = 0;
      if (!columns.read(length, column)) return false;
      visit(first + column, from);
    }
    return true;
  });
  return good && columns.at_end();
}
bool decode_csr(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                std::span<std::byte> values) {
  const std::size_t width = shape.element_bytes;
  std::fill(values.begin(), values.end(), std::byte{0});
  return for_csr(bytes, shape, values.size() / width,
                 [&](std::size_t place, const std::uint8_t* from) {
                   std::memcpy(values.data() + place * width, from, width);
                 });
}
bool multiply_csr(std::span<const std::uint8_t> bytes, const ChunkShape& shape, std::size_t count,
                  Product product, const float* in, float* out) {
  return by_kind(shape, [&]<WeightKind kKind>() {
    SparseSums sums(shape, product, in, out);
    return for_csr(bytes, shape, count, [&](std::size_t place, const std::uint8_t* from) {
      sums.add(place, stored_value<kKind>(from));
    });
  });
}

}  // namespace

const WeightCodec kBitmaskWeights{"bitmask",      true,           any_element,     bitmask_bytes,
                                  encode_bitmask, decode_bitmask, multiply_bitmask};
const WeightCodec kCooWeights{"coo",      true,       any_element, coo_bytes,
                              encode_coo, decode_coo, multiply_coo};
const WeightCodec kCsrWeights{"csr",      true,       any_element, csr_bytes,
                              encode_csr, decode_csr, multiply_csr};

}  // namespace plimsoll::codec
