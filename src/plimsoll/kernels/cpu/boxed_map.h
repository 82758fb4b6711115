// Maps into boxes (codec/box.h) and out again, on all cores.
#pragma once

#include <vector>

#include "plimsoll/codec/box.h"

namespace plimsoll::kernels {

// Blocks that their box refused, in host memory: by block, empty where it lies in the box. The memory is
// kept from step to step.
using Overflow = std::vector<std::vector<std::byte>>;

// Bytes of the box that the map needed. The seed decides how lossy codecs round.
std::size_t pack_map(const codec::Codec& codec, std::span<const std::byte> map, std::span<std::uint8_t> box, Overflow& overflow,
                     std::uint64_t seed = 1);
// False: the box or the overflow is not what pack_map left. What `map` then holds is undefined.
bool unpack_map(const codec::Codec& codec, std::span<const std::uint8_t> box, const Overflow& overflow, std::span<std::byte> map);

// What a codec of floats lost: `map` beside what its box gives back. The same sums for any number of threads.
struct MapError {
  double largest = 0;         // |difference|
  double squares = 0;         // of all differences
  double value_squares = 0;   // of all values, to compare with
};
// `by_block` is room for the sums of every block: a step of a plan allocates nothing.
MapError error_of(const codec::Codec& codec, std::span<const std::byte> map, std::span<const std::uint8_t> box, const Overflow& overflow,
                  std::span<MapError> by_block);

}  // namespace plimsoll::kernels
