#include "plimsoll/codec/weights/exponent_code.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "plimsoll/codec/weights/weight_loops.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kExponentBlock = 4096;
constexpr std::size_t kBlockHead = 10;
constexpr std::size_t kGroupValues = 64;
constexpr std::size_t kGroupBytes = 24;
constexpr unsigned kEscape = 7;

std::size_t plane_bytes(std::size_t count) {
  return (count + kGroupValues - 1) / kGroupValues * kGroupBytes;
}
std::size_t blocks_in(std::size_t count) {
  return (count + kExponentBlock - 1) / kExponentBlock;
}

bool takes_exponents(const ChunkShape& shape) {
  return shape.kind == WeightKind::kBF16 || shape.kind == WeightKind::kF32;
}
// The most: every exponent escapes.
std::size_t exponent_bytes(std::size_t count, const ChunkShape&) {
  return blocks_in(count) * kBlockHead + plane_bytes(count) + kGroupBytes * blocks_in(count) +
         2 * count;
}

unsigned exponent_of(std::uint16_t value) {
  return (value >> 7) & 0xffu;
}

struct ExponentTable {
  std::array<std::uint8_t, 8> exponents{};
  std::array<std::uint8_t, 256> codes;
};
ExponentTable commonest(std::span<const std::uint16_t> values) {
  std::array<std::uint32_t, 256> counts{};
  for (const std::uint16_t value : values) ++counts[exponent_of(value)];
  std::array<std::uint8_t, 256> order;
  for (std::size_t i = 0; i < 256; ++i) order[i] = static_cast<std::uint8_t>(i);
  std::partial_sort(order.begin(), order.begin() + kEscape, order.end(),
                    [&](std::uint8_t a, std::uint8_t b) {
                      return counts[a] != counts[b] ? counts[a] > counts[b] : a < b;
                    });
  ExponentTable out;
  out.codes.fill(kEscape);
  for (unsigned code = 0; code < kEscape; ++code) {
    out.exponents[code] = order[code];
    out.codes[order[code]] = static_cast<std::uint8_t>(code);
  }
  return out;
}

// Writes planes, rest and escapes of a block at `to`; returns the number of escapes.
std::size_t encode_block(std::span<const std::uint16_t> values, const ExponentTable& table,
                         std::uint8_t* to) {
  std::uint8_t* rest = to + plane_bytes(values.size());
  std::uint8_t* escapes = rest + values.size();
  std::size_t escaped = 0;
  for (std::size_t at = 0; at < values.size(); at += kGroupValues, to += kGroupBytes) {
    const std::size_t length = std::min(kGroupValues, values.size() - at);
    std::uint64_t planes[3] = {};
    for (std::size_t j = 0; j < length; ++j) {
      const std::uint16_t value = values[at + j];
      const std::uint64_t code = table.codes[exponent_of(value)];
      planes[0] |= (code & 1) << j;
      planes[1] |= ((code >> 1) & 1) << j;
      planes[2] |= (code >> 2) << j;
      escapes[escaped] = static_cast<std::uint8_t>(exponent_of(value));
      escaped += code == kEscape ? 1 : 0;
      rest[at + j] = static_cast<std::uint8_t>((value & 0x7f) | ((value >> 8) & 0x80));
    }
    std::memcpy(to, planes, kGroupBytes);
  }
  return escaped;
}

bool encode_exponents(std::span<const std::uint16_t> values, std::span<std::uint8_t> out,
                      std::size_t& used) {
  // One byte more than is ever used: the branch-free loop writes behind the last escape.
  if (out.size() < exponent_bytes(values.size(), {})) return false;
  const std::size_t blocks = blocks_in(values.size());
  std::size_t at = blocks * kBlockHead;
  for (std::size_t b = 0; b < blocks; ++b) {
    const auto block = values.subspan(b * kExponentBlock,
                                      std::min(kExponentBlock, values.size() - b * kExponentBlock));
    const ExponentTable table = commonest(block);
    const auto escaped = static_cast<std::uint16_t>(encode_block(block, table, out.data() + at));
    std::memcpy(out.data() + b * kBlockHead, table.exponents.data(), 8);
    std::memcpy(out.data() + b * kBlockHead + 8, &escaped, 2);
    at += plane_bytes(block.size()) + block.size() + escaped;
  }
  used = at;
  return true;
}

std::size_t escapes_before(const std::uint8_t* planes, std::size_t count) {
  std::size_t out = 0;
  for (std::size_t at = 0; at < count; at += kGroupValues, planes += kGroupBytes) {
    std::uint64_t m[3];
    std::memcpy(m, planes, kGroupBytes);
    out += static_cast<std::size_t>(std::popcount(m[0] & m[1] & m[2]));
  }
  return out;
}

// False: it has not as many escapes as codes 7.
bool decode_block(const std::uint8_t* table, const std::uint8_t* planes, std::size_t count,
                  std::size_t escaped, std::uint16_t* values) {
  const std::uint8_t* rest = planes + plane_bytes(count);
  const std::uint8_t* escapes = rest + count;
  const std::size_t whole = count / kGroupValues * kGroupValues;
  std::size_t used = 0;
  std::size_t at = vector_exponents(table, planes, rest, escapes, escaped, whole, values, used);
  // Where the vectors stopped within a group, that group's escapes are counted anew.
  if (at < whole && used > 0) used = escapes_before(planes, at);
  for (; at < count; ++at) {
    std::uint64_t m[3];
    std::memcpy(m, planes + at / kGroupValues * kGroupBytes, kGroupBytes);
    const std::size_t j = at % kGroupValues;
    const auto code = static_cast<unsigned>(((m[0] >> j) & 1) | (((m[1] >> j) & 1) << 1) |
                                            (((m[2] >> j) & 1) << 2));
    if (code == kEscape && used == escaped) return false;
    const unsigned exponent = code == kEscape ? escapes[used++] : table[code];
    values[at] =
        static_cast<std::uint16_t>((rest[at] & 0x80u) << 8 | exponent << 7 | (rest[at] & 0x7fu));
  }
  return used == escaped;
}

bool decode_exponents(std::span<const std::uint8_t> bytes, std::size_t count,
                      std::uint16_t* values) {
  const std::size_t blocks = blocks_in(count);
  std::size_t at = blocks * kBlockHead;
  if (bytes.size() < at) return false;
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t length = std::min(kExponentBlock, count - b * kExponentBlock);
    const std::size_t fixed = plane_bytes(length) + length;
    std::uint16_t escaped;
    std::memcpy(&escaped, bytes.data() + b * kBlockHead + 8, 2);
    if (bytes.size() - at < fixed + escaped) return false;
    if (!decode_block(bytes.data() + b * kBlockHead, bytes.data() + at, length, escaped,
                      values + b * kExponentBlock))
      return false;
    at += fixed + escaped;
  }
  return at == bytes.size();
}

bool encode_bf16_lossless(std::span<const std::byte> values, const ChunkShape& shape,
                          std::span<std::uint8_t> out, std::size_t& used) {
  const std::size_t count = values.size() / shape.element_bytes;
  std::vector<std::uint16_t> halves(count);
  if (shape.kind == WeightKind::kBF16) {
    if (count > 0) std::memcpy(halves.data(), values.data(), values.size());
    return encode_exponents(halves, out, used);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t word;
    std::memcpy(&word, values.data() + 4 * i, 4);
    if ((word & 0xffffu) != 0) return false;
    halves[i] = static_cast<std::uint16_t>(word >> 16);
  }
  return encode_exponents(halves, out, used);
}

bool decode_bf16_lossless(std::span<const std::uint8_t> bytes, const ChunkShape& shape,
                          std::span<std::byte> values) {
  const std::size_t count = values.size() / shape.element_bytes;
  if (shape.kind == WeightKind::kBF16)
    return decode_exponents(bytes, count, reinterpret_cast<std::uint16_t*>(values.data()));
  // Into the second half of the values, which writing from the front overtakes at the very end.
  auto* halves = reinterpret_cast<std::uint16_t*>(values.data()) + count;
  if (!decode_exponents(bytes, count, halves)) return false;
  constexpr std::size_t kAtOnce = 32;
  for (std::size_t i = 0; i < count; i += kAtOnce) {
    const std::size_t length = std::min(kAtOnce, count - i);
    std::uint16_t from[kAtOnce] = {};
    std::uint32_t to[kAtOnce];
    std::memcpy(from, halves + i, 2 * length);
    for (std::size_t j = 0; j < kAtOnce; ++j) to[j] = static_cast<std::uint32_t>(from[j]) << 16;
    std::memcpy(values.data() + 4 * i, to, 4 * length);
  }
  return true;
}

}  // namespace

const WeightCodec kBf16LosslessWeights{"bf16-lossless",      true,
                                       takes_exponents,      exponent_bytes,
                                       encode_bf16_lossless, decode_bf16_lossless};

}  // namespace plimsoll::codec
