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
constexpr std::size_t kPadding = 64;    // behind the last block: how far a vector may run over it

struct Header {
  std::uint32_t nonzero = 0;
  std::uint32_t base = 0;  // bits of a power of two, and flags
  std::uint32_t escapes = 0;
};
struct Escape {
  std::uint32_t place = 0;  // among those that are not zero
  std::uint32_t bits = 0;
};

// The values of a block that are not zero, in order; vectors may run over the end.
using Words = std::array<std::uint32_t, kSparseBlock + kPadding>;

template <typename Byte>
// the last is that of signs, null where there is none
using Planes = std::array<Byte*, kPlanes + 1>;

// Where the parts of a block lie, from its header on.
struct Layout {
  std::size_t bitmap = sizeof(Header);
  std::size_t planes;
  std::size_t plane_bytes;
  std::size_t low;
  std::size_t escapes;
  bool is_signed;

  Layout(std::size_t count, std::size_t nonzero, bool any_negative)
      : planes(bitmap + mask_bytes(count)),
        plane_bytes(mask_bytes(nonzero)),
        low(planes + (any_negative ? kPlanes + 1 : kPlanes) * plane_bytes),
        escapes(low + 3 * nonzero),
        is_signed(any_negative) {}

  std::size_t end(std::size_t escaped) const { return escapes + escaped * sizeof(Escape); }

  template <typename Byte>
  Planes<Byte> planes_of(Byte* block) const {
    Planes<Byte> out{};
    for (std::size_t p = 0; p < kPlanes + (is_signed ? 1 : 0); ++p)
      out[p] = block + planes + p * plane_bytes;
    return out;
  }
};

void set_bit(std::uint8_t* mask, std::size_t i, bool on) {
  mask[i / 8] = static_cast<std::uint8_t>(mask[i / 8] | (on ? 1u << (i % 8) : 0u));
}
bool bit_at(const std::uint8_t* mask, std::size_t i) {
  return ((mask[i / 8] >> (i % 8)) & 1) != 0;
}

// The values that are not zero, in order, and their union and largest magnitude.
Nonzeros take_nonzero(std::span<const float> values, std::uint8_t* bitmap, Words& nonzero) {
  const auto* bits = reinterpret_cast<const std::uint32_t*>(values.data());
  Nonzeros out;
  std::size_t i = vector_take_nonzero(bits, values.size(), bitmap, nonzero.data(), out);
  std::fill(bitmap + i / 8, bitmap + mask_bytes(values.size()), std::uint8_t{0});
  for (; i < values.size(); ++i) {
    const auto value = std::bit_cast<std::uint32_t>(values[i]);
    if (value == 0) continue;
    set_bit(bitmap, i, true);
    nonzero[out.count++] = value;
    out.any |= value;
    out.largest = std::max(out.largest, value & kMagnitude);
  }
  return out;
}

// Bytes and planes of every value; true when some lie outside the window.
bool take_apart(const Words& nonzero, std::size_t count, std::uint32_t base, std::uint8_t* low,
                const Planes<std::uint8_t>& planes) {
  bool outside = false;
  std::size_t i = vector_take_apart(nonzero.data(), count, base, low, planes.data(), outside);
  for (std::uint8_t* plane : planes) {
    if (plane != nullptr) std::fill(plane + i / 8, plane + mask_bytes(count), std::uint8_t{0});
  }
  for (; i < count; ++i) {
    const std::uint32_t distance = (nonzero[i] & kMagnitude) - base;
    outside = outside || distance >= kWindow;
    for (std::size_t k = 0; k < 3; ++k)
      low[3 * i + k] = static_cast<std::uint8_t>(distance >> (8 * k));
    for (std::size_t p = 0; p < kPlanes; ++p)
      set_bit(planes[p], i, ((distance >> (24 + p)) & 1) != 0);
    if (planes[kPlanes] != nullptr) set_bit(planes[kPlanes], i, nonzero[i] >> 31 != 0);
  }
  return outside;
}

std::uint8_t* append(std::uint8_t* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return to + bytes;
}

std::size_t encode_plain(std::span<const float> values, std::span<std::uint8_t> out) {
  const std::size_t bytes = sizeof(Header) + values.size_bytes();
  if (out.size() < bytes + kPadding) return 0;
  const Header header{0, kPlain, 0};
  append(append(out.data(), &header, sizeof header), values.data(), values.size_bytes());
  return bytes;
}

// Escapes from `at` on, but never past `end`; null: they do not fit.
std::uint8_t* append_escapes(std::span<const std::uint32_t> nonzero, std::uint32_t base,
                             std::uint8_t* at, const std::uint8_t* end) {
  for (std::size_t i = 0; i < nonzero.size(); ++i) {
    i += vector_first_outside(nonzero.data() + i, nonzero.size() - i, base);
    while (i < nonzero.size() && (nonzero[i] & kMagnitude) - base < kWindow) ++i;
    if (i == nonzero.size()) break;
    const Escape escape{static_cast<std::uint32_t>(i), nonzero[i]};
    if (end - at < static_cast<std::ptrdiff_t>(sizeof escape)) return nullptr;
    at = append(at, &escape, sizeof escape);
  }
  return at;
}

// Bytes written; 0: the output, padding included, is too small.
std::size_t encode_block(std::span<const float> values, std::span<std::uint8_t> out,
                         Words& nonzero) {
  if (out.size() < sizeof(Header) + mask_bytes(values.size()) + kPadding) return 0;
  const Nonzeros found = take_nonzero(values, out.data() + sizeof(Header), nonzero);
  const Layout layout(values.size(), found.count, found.any >> 31 != 0);
  // Beyond this a plain block is smaller, or it does not fit.
  const std::size_t most = std::min(sizeof(Header) + values.size_bytes(), out.size() - kPadding);
  if (layout.escapes > most) return encode_plain(values, out);
  const std::uint32_t top = found.largest >> 23;
  const std::uint32_t base = (top + 1 > kBinades ? top + 1 - kBinades : 0) << 23;
  const bool outside =
      take_apart(nonzero, found.count, base, out.data() + layout.low, layout.planes_of(out.data()));
  std::uint8_t* end = out.data() + layout.escapes;
  if (outside)
    end = append_escapes(std::span(nonzero).first(found.count), base, end, out.data() + most);
  if (end == nullptr) return encode_plain(values, out);
  const auto bytes = static_cast<std::size_t>(end - out.data());
  const Header header{static_cast<std::uint32_t>(found.count),
                      base | (layout.is_signed ? kSigned : 0),
                      static_cast<std::uint32_t>((bytes - layout.escapes) / sizeof(Escape))};
  append(out.data(), &header, sizeof header);
  return bytes;
}

// Puts the values that are not zero together again.
void put_together(const std::uint8_t* low, const Planes<const std::uint8_t>& planes,
                  std::size_t count, std::uint32_t base, Words& nonzero) {
  std::size_t i = vector_put_together(low, planes.data(), count, base, nonzero.data());
  for (; i < count; ++i) {
    std::uint32_t distance = 0;
    for (std::size_t k = 0; k < 3; ++k)
      distance |= static_cast<std::uint32_t>(low[3 * i + k]) << (8 * k);
    for (std::size_t p = 0; p < kPlanes; ++p)
      distance |= static_cast<std::uint32_t>(bit_at(planes[p], i)) << (24 + p);
    const bool negative = planes[kPlanes] != nullptr && bit_at(planes[kPlanes], i);
    nonzero[i] = (distance + base) | (negative ? 1u << 31 : 0);
  }
}

// How many values went where the bitmap has bits.
std::size_t spread(const std::uint8_t* bitmap, const Words& nonzero, std::span<float> values) {
  auto* out = reinterpret_cast<std::uint32_t*>(values.data());
  std::size_t taken = 0;
  std::size_t i = vector_spread(nonzero.data(), bitmap, values.size(), out, taken);
  for (; i < values.size(); ++i) {
    values[i] = bit_at(bitmap, i) ? std::bit_cast<float>(nonzero[taken++]) : 0.0f;
  }
  return taken;
}

// Bytes read; 0: they are no such block with padding or another block behind it.
std::size_t decode_block(std::span<const std::uint8_t> bytes, std::span<float> values,
                         Words& nonzero) {
  Header header;
  if (bytes.size() < sizeof header + kPadding) return 0;
  const std::size_t available = bytes.size() - kPadding;
  std::memcpy(&header, bytes.data(), sizeof header);
  if ((header.base & kPlain) != 0) {
    if (available - sizeof header < values.size_bytes()) return 0;
    std::memcpy(values.data(), bytes.data() + sizeof header, values.size_bytes());
    return sizeof header + values.size_bytes();
  }
  if (header.nonzero > values.size() || header.escapes > header.nonzero) return 0;
  const Layout layout(values.size(), header.nonzero, (header.base & kSigned) != 0);
  if (available < layout.end(header.escapes)) return 0;
  put_together(bytes.data() + layout.low, layout.planes_of(bytes.data()), header.nonzero,
               header.base & ~(kSigned | kPlain), nonzero);
  for (std::uint32_t e = 0; e < header.escapes; ++e) {
    Escape escape;
    std::memcpy(&escape, bytes.data() + layout.escapes + e * sizeof escape, sizeof escape);
    if (escape.place >= header.nonzero) return 0;
    nonzero[escape.place] = escape.bits;
  }
  if (spread(bytes.data() + layout.bitmap, nonzero, values) != header.nonzero) return 0;
  return layout.end(header.escapes);
}

}  // namespace

std::size_t sparse_largest_bytes(std::size_t count) {
  return count * sizeof(float) + (count + kSparseBlock - 1) / kSparseBlock * sizeof(Header) +
         kPadding;
}

std::size_t sparse_bytes(std::size_t count, double zeros) {
  const auto nonzero = static_cast<std::size_t>(static_cast<double>(count) * (1 - zeros)) + 1;
  const auto escaped = static_cast<std::size_t>(static_cast<double>(count) * kEscapeRoom) + 1;
  const std::size_t blocks = (count + kSparseBlock - 1) / kSparseBlock;
  const std::size_t tails = blocks * (sizeof(Header) + 1 + kPlanes) + kPadding;
  return std::min(sparse_largest_bytes(count), Layout(count, nonzero, false).end(escaped) + tails);
}

bool encode_sparse(std::span<const float> values, std::span<std::uint8_t> out, std::size_t& used) {
  Words nonzero;
  used = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kSparseBlock) {
    const auto block = values.subspan(begin, std::min(kSparseBlock, values.size() - begin));
    const std::size_t bytes = encode_block(block, out.subspan(used), nonzero);
    if (bytes == 0) return false;
    used += bytes;
  }
  if (out.size() - used < kPadding) return false;
  std::memset(out.data() + used, 0, kPadding);
  used += kPadding;
  return true;
}

bool decode_sparse(std::span<const std::uint8_t> bytes, std::span<float> values) {
  Words nonzero;
  for (std::size_t begin = 0; begin < values.size(); begin += kSparseBlock) {
    const auto block = values.subspan(begin, std::min(kSparseBlock, values.size() - begin));
    const std::size_t read = decode_block(bytes, block, nonzero);
    if (read == 0) return false;
    bytes = bytes.subspan(read);
  }
  return bytes.size() == kPadding;
}

}  // namespace plimsoll::codec
