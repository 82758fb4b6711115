#include "plimsoll/codec/sparse.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "plimsoll/codec/bit_mask.h"
#include "plimsoll/codec/vector_loops.h"

namespace plimsoll::codec {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffffu;
constexpr std::uint32_t kWindow = 1u << 27;
constexpr std::uint32_t kBinades = 16;  // powers of two in the window
constexpr std::size_t kPlanes = 3;
constexpr std::uint32_t kSigned = 1;  // flags, in the low bits of the base
constexpr std::uint32_t kPlain = 2;
constexpr double kEscapeRoom = 0.0005;  // of the values

struct Header {
  std::uint32_t nonzero = 0;
  std::uint32_t base = 0;  // bits of a power of two, and flags
  std::uint32_t escapes = 0;
};
struct Escape {
  std::uint32_t place = 0;  // among those that are not zero
  std::uint32_t bits = 0;
};

// What one block is taken apart into; vector stores may run over an end by less than kSlack.
constexpr std::size_t kSlack = 64;
struct Parts {
  std::array<std::uint32_t, kSparseBlock + kSlack> nonzero;
  std::array<std::uint8_t, kSparseBlock / 8 + kSlack> bitmap;
  std::array<std::uint8_t, 3 * kSparseBlock + kSlack> low;
  std::array<std::array<std::uint8_t, kSparseBlock / 8 + kSlack>, kPlanes + 1> planes;
};

std::size_t block_bytes(std::size_t count, std::size_t nonzero, std::size_t planes,
                        std::size_t escapes) {
  return sizeof(Header) + mask_bytes(count) + 3 * nonzero + planes * mask_bytes(nonzero) +
         escapes * sizeof(Escape);
}

void set_bit(std::uint8_t* mask, std::size_t i, bool on) {
  const auto bit = static_cast<std::uint8_t>(1u << (i % 8));
  mask[i / 8] = static_cast<std::uint8_t>(on ? mask[i / 8] | bit : mask[i / 8] & ~bit);
}
bool bit_at(const std::uint8_t* mask, std::size_t i) {
  return ((mask[i / 8] >> (i % 8)) & 1) != 0;
}

// The values that are not zero, in order, and their union and largest magnitude.
Nonzeros take_nonzero(std::span<const float> values, Parts& parts) {
  const auto* bits = reinterpret_cast<const std::uint32_t*>(values.data());
  Nonzeros out;
  std::size_t i = vector_take_nonzero(bits, values.size(), parts.bitmap.data(),
                                      parts.nonzero.data(), out);
  for (; i < values.size(); ++i) {
    if (i % 8 == 0) parts.bitmap[i / 8] = 0;
    const auto value = std::bit_cast<std::uint32_t>(values[i]);
    if (value == 0) continue;
    set_bit(parts.bitmap.data(), i, true);
    parts.nonzero[out.count++] = value;
    out.any |= value;
    out.largest = std::max(out.largest, value & kMagnitude);
  }
  return out;
}

// Bytes and planes of every value; true when some lie outside the window.
bool take_apart(std::size_t count, std::uint32_t base, Parts& parts) {
  std::array<std::uint8_t*, kPlanes + 1> planes;
  for (std::size_t p = 0; p < planes.size(); ++p) planes[p] = parts.planes[p].data();
  bool outside = false;
  std::size_t i = vector_take_apart(parts.nonzero.data(), count, base, parts.low.data(),
                                    planes.data(), outside);
  for (; i < count; ++i) {
    const std::uint32_t distance = (parts.nonzero[i] & kMagnitude) - base;
    outside = outside || distance >= kWindow;
    for (std::size_t k = 0; k < 3; ++k)
      parts.low[3 * i + k] = static_cast<std::uint8_t>(distance >> (8 * k));
    for (std::size_t p = 0; p < kPlanes; ++p)
      set_bit(planes[p], i, ((distance >> (24 + p)) & 1) != 0);
    set_bit(planes[kPlanes], i, parts.nonzero[i] >> 31 != 0);
  }
  for (std::uint8_t* plane : planes) {
    if (count % 8 != 0)
      plane[count / 8] = static_cast<std::uint8_t>(plane[count / 8] & ((1u << (count % 8)) - 1));
  }
  return outside;
}

std::size_t count_escapes(std::size_t count, std::uint32_t base, const Parts& parts) {
  std::size_t escapes = 0;
  for (std::size_t i = 0; i < count; ++i)
    escapes += ((parts.nonzero[i] & kMagnitude) - base) >= kWindow;
  return escapes;
}

std::uint8_t* append(std::uint8_t* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return to + bytes;
}

std::size_t encode_plain(std::span<const float> values, std::span<std::uint8_t> out) {
  const std::size_t bytes = sizeof(Header) + values.size_bytes();
  if (out.size() < bytes) return 0;
  const Header header{0, kPlain, 0};
  append(append(out.data(), &header, sizeof header), values.data(), values.size_bytes());
  return bytes;
}

// Bytes written; 0: the room is too small.
std::size_t encode_block(std::span<const float> values, std::span<std::uint8_t> out, Parts& parts) {
  const Nonzeros found = take_nonzero(values, parts);
  const std::uint32_t top = found.largest >> 23;
  const std::uint32_t base = (top + 1 > kBinades ? top + 1 - kBinades : 0) << 23;
  const bool outside = take_apart(found.count, base, parts);
  const std::size_t escapes = outside ? count_escapes(found.count, base, parts) : 0;
  const bool is_signed = found.any >> 31 != 0;
  const std::size_t planes = kPlanes + (is_signed ? 1 : 0);
  const std::size_t bytes = block_bytes(values.size(), found.count, planes, escapes);
  if (bytes >= sizeof(Header) + values.size_bytes()) return encode_plain(values, out);
  if (out.size() < bytes) return 0;
  const Header header{static_cast<std::uint32_t>(found.count), base | (is_signed ? kSigned : 0),
                      static_cast<std::uint32_t>(escapes)};
  std::uint8_t* at = append(out.data(), &header, sizeof header);
  at = append(at, parts.bitmap.data(), mask_bytes(values.size()));
  at = append(at, parts.low.data(), 3 * found.count);
  for (std::size_t p = 0; p < planes; ++p)
    at = append(at, parts.planes[p].data(), mask_bytes(found.count));
  for (std::size_t i = 0; escapes > 0 && i < found.count; ++i) {
    if (((parts.nonzero[i] & kMagnitude) - base) < kWindow) continue;
    const Escape escape{static_cast<std::uint32_t>(i), parts.nonzero[i]};
    at = append(at, &escape, sizeof escape);
  }
  return bytes;
}

// Puts the values that are not zero together again.
void put_together(std::size_t count, std::uint32_t base, bool is_signed, Parts& parts) {
  std::array<const std::uint8_t*, kPlanes + 1> planes{};
  for (std::size_t p = 0; p < kPlanes + (is_signed ? 1 : 0); ++p) planes[p] = parts.planes[p].data();
  std::size_t i = vector_put_together(parts.low.data(), planes.data(), count, base,
                                      parts.nonzero.data());
  for (; i < count; ++i) {
    std::uint32_t distance = 0;
    for (std::size_t k = 0; k < 3; ++k)
      distance |= static_cast<std::uint32_t>(parts.low[3 * i + k]) << (8 * k);
    for (std::size_t p = 0; p < kPlanes; ++p)
      distance |= static_cast<std::uint32_t>(bit_at(planes[p], i)) << (24 + p);
    const std::uint32_t sign = is_signed && bit_at(planes[kPlanes], i) ? 1u << 31 : 0;
    parts.nonzero[i] = (distance + base) | sign;
  }
}

// How many values went where the bitmap has bits.
std::size_t spread(std::span<const std::uint8_t> bitmap, const Parts& parts, std::span<float> values) {
  auto* out = reinterpret_cast<std::uint32_t*>(values.data());
  std::size_t taken = 0;
  std::size_t i = vector_spread(parts.nonzero.data(), bitmap.data(), values.size(), out, taken);
  for (; i < values.size(); ++i) {
    values[i] = bit_at(bitmap.data(), i) ? std::bit_cast<float>(parts.nonzero[taken++]) : 0.0f;
  }
  return taken;
}

// Bytes read; 0: they are no such block.
std::size_t decode_block(std::span<const std::uint8_t> bytes, std::span<float> values,
                         Parts& parts) {
  Header header;
  if (bytes.size() < sizeof header) return 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  if ((header.base & kPlain) != 0) {
    if (bytes.size() - sizeof header < values.size_bytes()) return 0;
    std::memcpy(values.data(), bytes.data() + sizeof header, values.size_bytes());
    return sizeof header + values.size_bytes();
  }
  const bool is_signed = (header.base & kSigned) != 0;
  const std::size_t planes = kPlanes + (is_signed ? 1 : 0);
  if (header.nonzero > values.size() || header.escapes > header.nonzero) return 0;
  const std::size_t size = block_bytes(values.size(), header.nonzero, planes, header.escapes);
  if (bytes.size() < size) return 0;
  const std::span bitmap = bytes.subspan(sizeof header, mask_bytes(values.size()));
  const std::uint8_t* at = bitmap.data() + bitmap.size();
  std::memcpy(parts.low.data(), at, 3 * header.nonzero);
  at += 3 * header.nonzero;
  for (std::size_t p = 0; p < planes; ++p, at += mask_bytes(header.nonzero))
    std::memcpy(parts.planes[p].data(), at, mask_bytes(header.nonzero));
  put_together(header.nonzero, header.base & ~(kSigned | kPlain), is_signed, parts);
  for (std::uint32_t e = 0; e < header.escapes; ++e) {
    Escape escape;
    std::memcpy(&escape, at + e * sizeof escape, sizeof escape);
    if (escape.place >= header.nonzero) return 0;
    parts.nonzero[escape.place] = escape.bits;
  }
  return spread(bitmap, parts, values) == header.nonzero ? size : 0;
}

}  // namespace

std::size_t sparse_largest_bytes(std::size_t count) {
  return count * sizeof(float) + (count + kSparseBlock - 1) / kSparseBlock * sizeof(Header);
}

std::size_t sparse_bytes(std::size_t count, double zeros) {
  const auto nonzero = static_cast<std::size_t>(static_cast<double>(count) * (1 - zeros)) + 1;
  const auto escapes = static_cast<std::size_t>(static_cast<double>(count) * kEscapeRoom) + 1;
  const std::size_t blocks = (count + kSparseBlock - 1) / kSparseBlock;
  const std::size_t tails = blocks * (sizeof(Header) + 1 + kPlanes);
  return std::min(sparse_largest_bytes(count),
                  block_bytes(count, nonzero, kPlanes, escapes) + tails);
}

bool encode_sparse(std::span<const float> values, std::span<std::uint8_t> out, std::size_t& used) {
  Parts parts;
  used = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kSparseBlock) {
    const auto block = values.subspan(begin, std::min(kSparseBlock, values.size() - begin));
    const std::size_t bytes = encode_block(block, out.subspan(used), parts);
    if (bytes == 0) return false;
    used += bytes;
  }
  return true;
}

bool decode_sparse(std::span<const std::uint8_t> bytes, std::span<float> values) {
  Parts parts;
  for (std::size_t begin = 0; begin < values.size(); begin += kSparseBlock) {
    const auto block = values.subspan(begin, std::min(kSparseBlock, values.size() - begin));
    const std::size_t read = decode_block(bytes, block, parts);
    if (read == 0) return false;
    bytes = bytes.subspan(read);
  }
  return bytes.empty();
}

}  // namespace plimsoll::codec
