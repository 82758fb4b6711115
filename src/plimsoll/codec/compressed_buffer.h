// A compressed: room of a size fixed by the plan for an encoded map whose true size only the data
// knows.
//
//   ┌ 8 bytes a block ─┬ blocks, in any order ┬ unused ┐
//   │ where, how long  │ what the codec wrote │        │
//   └──────────────────┴──────────────────────┴────────┘
//
// A plan is made before the first step, so the room for a sparse map is a guess: a share of it is
// taken to be zero. A map is cut into blocks of kCompressedBlock values that any thread may put and
// open, in any order. A block for which there is no room left is refused, and the compressed says
// so to whoever opens it; the caller keeps its plain values elsewhere. Nothing is ever lost, and a
// map with a few zeros too few pays for those few:
//
//   CompressedWriter writer(codec, count, compressed, seed);
//   for (block...) if (!writer.put(block, its values)) keep them elsewhere;     // from any thread
//   for (block...) if (open_block(codec, count, compressed, block, values) == kRefused) fetch them
//   from
//   there;
//
// Which blocks lie where, and which are refused, depends on the threads; whether all fit does not,
// and what a lossy codec made of a block depends on the seed and the block alone. A compressed with
// any bytes whatever is opened without touching anything outside it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/codec/codec.h"

namespace plimsoll::codec {

inline constexpr std::size_t kCompressedBlock = 16384;

constexpr std::size_t compressed_blocks(std::size_t count) {
  return (count + kCompressedBlock - 1) / kCompressedBlock;
}
// The share of the bytes of `map` that block `block` is.
template <typename Byte>
std::span<Byte> uncompressed_part(const Codec& codec, std::span<Byte> map, std::size_t block) {
  const std::size_t bytes = kCompressedBlock * codec.element_bytes;
  const std::size_t begin = block * bytes;
  return map.subspan(begin, map.size() - begin < bytes ? map.size() - begin : bytes);
}

// Bytes of the compressed for `count` values of which this share is zero (only `sparse` cares).
std::size_t compressed_bytes(const Codec& codec, std::size_t count, double zeros);
// The least that any compressed for `count` values has.
std::size_t least_compressed_bytes(std::size_t count);

class CompressedWriter {
 public:
  CompressedWriter(const Codec& codec, std::size_t count, std::span<std::uint8_t> compressed,
                   std::uint64_t seed);

  // False: refused. Once for every block.
  bool put(std::size_t block, std::span<const std::byte> values);
  // Of the compressed so far, with the list of blocks: what the data needed of the room that the
  // plan gave.
  std::size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  // The place of so many bytes from now on; 0: there is no room for them.
  std::size_t claim(std::size_t bytes);

  const Codec& codec_;
  std::span<std::uint8_t> compressed_;
  std::uint64_t seed_;
  std::atomic<std::size_t> used_;
};

enum class Opened : std::uint8_t { kValues, kRefused, kDamaged };
Opened open_block(const Codec& codec, std::size_t count, std::span<const std::uint8_t> compressed,
                  std::size_t block, std::span<std::byte> values);

}  // namespace plimsoll::codec
