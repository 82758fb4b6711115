// Maps into compressed buffers (codec/compressed_buffer.h) and out again, on all cores.
#pragma once

#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/codec/compressed_buffer.h"

namespace plimsoll::kernels {

// Host memory for the blocks of one map that their compressed refuses. It is as large as the map
// and taken before the first step; a refused block stands in it where it stands in the map.
class Overflow {
 public:
  Overflow(const codec::Codec& codec, std::size_t map_bytes);

  Bytes room_wanted() const { return Bytes(static_cast<std::int64_t>(map_bytes_)); }
  // Takes the first bytes of `memory` and gives back the rest.
  std::span<std::byte> take_room(std::span<std::byte> memory);
  // What waits there now.
  Bytes bytes() const;
  std::size_t blocks() const { return refused_.size(); }
  bool holds(std::size_t block) const { return refused_[block] != 0; }

 private:
  friend std::size_t compress_activation(const codec::Codec&, std::span<const std::byte>,
                                         std::span<std::uint8_t>, Overflow&, std::uint64_t);
  friend bool decompress_activation(const codec::Codec&, std::span<const std::uint8_t>,
                                    const Overflow&, std::span<std::byte>);

  const codec::Codec* codec_;
  std::size_t map_bytes_;
  std::span<std::byte> room_;
  std::vector<std::uint8_t> refused_;  // by block: whether it waits here
};

// Bytes of the compressed that the map needed. The seed decides how lossy codecs round.
std::size_t compress_activation(const codec::Codec& codec, std::span<const std::byte> map,
                                std::span<std::uint8_t> compressed, Overflow& overflow,
                                std::uint64_t seed = 1);
// False: the compressed or the overflow is not what compress_activation left. What `map` then holds
// is undefined.
bool decompress_activation(const codec::Codec& codec, std::span<const std::uint8_t> compressed,
                           const Overflow& overflow, std::span<std::byte> map);

// What a codec of floats lost: `map` beside what its compressed gives back. The same sums for any
// number of threads.
struct ActivationError {
  double largest = 0;        // |difference|
  double squares = 0;        // of all differences
  double value_squares = 0;  // of all values, to compare with
};
// `by_block` is room for the sums of every block: a step of a plan allocates nothing.
ActivationError error_of(const codec::Codec& codec, std::span<const std::byte> map,
                         std::span<const std::uint8_t> compressed, const Overflow& overflow,
                         std::span<ActivationError> by_block);

}  // namespace plimsoll::kernels
