#include "plimsoll/codec/compressed_buffer.h"

#include <array>
#include <cstring>

#include "plimsoll/base/check.h"
#include "plimsoll/base/random.h"
#include "plimsoll/codec/sparse.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kUnit = 8;  // blocks begin at multiples of it, so that 32 bits can say where

struct Entry {
  // In units, from the start of the buffer; 0, where the entries are: the block is incompressible.
  std::uint32_t place = 0;
  std::uint32_t bytes = 0;
};

std::size_t in_units(std::size_t bytes) {
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

std::size_t compressed_bytes(const Codec& codec, std::size_t count, double zeros) {
  const std::size_t content =
      codec.name == "sparse" ? sparse_bytes(count, zeros) : codec.largest_bytes(count);
  return least_compressed_bytes(count) + in_units(content) + compressed_blocks(count) * kUnit;
}

std::size_t least_compressed_bytes(std::size_t count) {
  return compressed_blocks(count) * sizeof(Entry);
}

CompressedWriter::CompressedWriter(const Codec& codec, std::size_t count,
                                   std::span<std::uint8_t> buffer, std::uint64_t seed)
    : codec_(codec), buffer_(buffer), seed_(seed), used_(least_compressed_bytes(count)) {
  PLIMSOLL_CHECK(buffer.size() >= least_compressed_bytes(count),
                 "a compressed buffer of {} bytes for {} values", buffer.size(), count);
}

std::size_t CompressedWriter::claim(std::size_t bytes) {
  std::size_t place = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > buffer_.size() - place) return 0;
  } while (!used_.compare_exchange_weak(place, place + bytes, std::memory_order_relaxed));
  return place;
}

std::size_t CompressedWriter::put(std::size_t block, std::span<const std::byte> values) {
  std::array<std::uint8_t, kCompressedBlock * sizeof(float) + 4096> encoded;
  std::size_t bytes = 0;
  const bool represented = codec_.encode(values, mix64(seed_ + block), encoded, bytes);
  const std::size_t place = represented ? claim(in_units(bytes)) : 0;
  const Entry entry{static_cast<std::uint32_t>(place / kUnit), static_cast<std::uint32_t>(bytes)};
  std::memcpy(buffer_.data() + block * sizeof entry, &entry, sizeof entry);
  if (place == 0) return 0;
  std::memcpy(buffer_.data() + place, encoded.data(), bytes);
  return in_units(bytes);
}

Opened open_block(const Codec& codec, std::size_t count, std::span<const std::uint8_t> buffer,
                  std::size_t block, std::span<std::byte> values) {
  if (buffer.size() < least_compressed_bytes(count)) return Opened::kDamaged;
  Entry entry;
  std::memcpy(&entry, buffer.data() + block * sizeof entry, sizeof entry);
  if (entry.place == 0) return Opened::kIncompressible;
  const std::size_t place = std::size_t{entry.place} * kUnit;
  if (place > buffer.size() || entry.bytes > buffer.size() - place) return Opened::kDamaged;
  return codec.decode(buffer.subspan(place, entry.bytes), values) ? Opened::kValues
                                                                  : Opened::kDamaged;
}

}  // namespace plimsoll::codec
