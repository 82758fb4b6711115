// A compressed buffer: bytes of a size fixed by the plan for an encoded activation, whose true size
// only the data knows.
//
//   ┌ 8 bytes a block ─┬ blocks, in any order ┬ unused ┐
//   │ where, how long  │ what the codec wrote │        │
//   └──────────────────┴──────────────────────┴────────┘
//
// A plan is made before the first step, so the size for a sparse activation is a guess: a share of
// it is taken to be zero. An activation is cut into blocks of kCompressedBlock values that any
// thread may write and read, in any order. A block that no longer fits, or that the codec cannot
// represent, is incompressible: the buffer records that, tells whoever reads the block, and the
// caller keeps its plain values elsewhere. Nothing is ever lost, and an activation with a few zeros
// too few pays for those few:
//
//   CompressedWriter writer(codec, count, buffer, seed);
//   for (block...)                                             // from any thread
//     if (writer.put(block, its values) == 0) keep them elsewhere;
//   for (block...)
//     if (open_block(codec, count, buffer, block, values) == Opened::kIncompressible)
//       fetch them from there;
//
// Which blocks lie where, and which are left out, depends on the threads; whether all fit does not,
// and what a lossy codec made of a block depends on the seed and the block alone. A buffer with any
// bytes whatever is read without touching anything outside it.
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
// The bytes of block `block` among those of a plain activation.
template <typename Byte>
std::span<Byte> uncompressed_part(const Codec& codec, std::span<Byte> activation,
                                  std::size_t block) {
  const std::size_t bytes = kCompressedBlock * codec.element_bytes;
  const std::size_t begin = block * bytes;
  const std::size_t rest = activation.size() - begin;
  return activation.subspan(begin, rest < bytes ? rest : bytes);
}

// Bytes of a compressed buffer for `count` values of which this share is zero (only `sparse`
// cares).
std::size_t compressed_bytes(const Codec& codec, std::size_t count, double zeros);
// The least that any compressed buffer for `count` values has.
std::size_t least_compressed_bytes(std::size_t count);

class CompressedWriter {
 public:
  CompressedWriter(const Codec& codec, std::size_t count, std::span<std::uint8_t> buffer,
                   std::uint64_t seed);

  // What the block takes of the buffer; 0: it is incompressible. Once for every block.
  std::size_t put(std::size_t block, std::span<const std::byte> values);
  // Of the buffer so far, with the list of blocks: what the data needed of what the plan gave.
  std::size_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  // The place of so many bytes from now on; 0: that many are not left.
  std::size_t claim(std::size_t bytes);

  const Codec& codec_;
  std::span<std::uint8_t> buffer_;
  std::uint64_t seed_;
  std::atomic<std::size_t> used_;
};

enum class Opened : std::uint8_t { kValues, kIncompressible, kDamaged };
Opened open_block(const Codec& codec, std::size_t count, std::span<const std::uint8_t> buffer,
                  std::size_t block, std::span<std::byte> values);

}  // namespace plimsoll::codec
