// Maps into boxes (codec/box.h) and out again, on all cores.
#pragma once

#include <vector>

#include "plimsoll/codec/box.h"

namespace plimsoll::kernels {

// Blocks that their box refused, in host memory: by block, empty where it lies in the box. The memory is
// kept from step to step.
using Overflow = std::vector<std::vector<std::byte>>;

void pack_map(const codec::Codec& codec, std::span<const std::byte> map, std::span<std::uint8_t> box, Overflow& overflow);
// False: the box or the overflow is not what pack_map left. What `map` then holds is undefined.
bool unpack_map(const codec::Codec& codec, std::span<const std::uint8_t> box, const Overflow& overflow, std::span<std::byte> map);

}  // namespace plimsoll::kernels
