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
  std::uint32_t place =
      0;  // in units, from the start of the compressed; 0, where entries are: refused
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
                                   std::span<std::uint8_t> compressed, std::uint64_t seed)
    : codec_(codec), compressed_(compressed), seed_(seed), used_(least_compressed_bytes(count)) {
  PLIMSOLL_CHECK(compressed.size() >= least_compressed_bytes(count),
                 "a compressed of {} bytes for {} values", compressed.size(), count);
}

std::size_t CompressedWriter::claim(std::size_t bytes) {
  std::size_t place = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > compressed_.size() - place) return 0;
  } while (!used_.compare_exchange_weak(place, place + bytes, std::memory_order_relaxed));
  return place;
}

bool CompressedWriter::put(std::size_t block, std::span<const std::byte> values) {
  std::array<std::uint8_t, kCompressedBlock * sizeof(float) + 4096> room;
  std::size_t bytes = 0;
  const bool encoded = codec_.encode(values, mix64(seed_ + block), room, bytes);
  const std::size_t place = encoded ? claim(in_units(bytes)) : 0;
  const Entry entry{static_cast<std::uint32_t>(place / kUnit), static_cast<std::uint32_t>(bytes)};
  std::memcpy(compressed_.data() + block * sizeof entry, &entry, sizeof entry);
  if (place == 0) return false;
  std::memcpy(compressed_.data() + place, room.data(), bytes);
  return true;
}

Opened open_block(const Codec& codec, std::size_t count, std::span<const std::uint8_t> compressed,
                  std::size_t block, std::span<std::byte> values) {
  if (compressed.size() < least_compressed_bytes(count)) return Opened::kDamaged;
  Entry entry;
  std::memcpy(&entry, compressed.data() + block * sizeof entry, sizeof entry);
  if (entry.place == 0) return Opened::kRefused;
  const std::size_t place = std::size_t{entry.place} * kUnit;
  if (place > compressed.size() || entry.bytes > compressed.size() - place) return Opened::kDamaged;
  return codec.decode(compressed.subspan(place, entry.bytes), values) ? Opened::kValues
                                                                      : Opened::kDamaged;
}

}  // namespace plimsoll::codec
