// Maps into boxes (codec/box.h) and out again, on all cores.
#pragma once

#include "plimsoll/codec/box.h"

namespace plimsoll::kernels {

// False: the map did not fit, and the box says so.
bool pack_map(const codec::Codec& codec, std::span<const std::byte> map, std::span<std::uint8_t> box);
// What is left in `map` unless all of it came back is undefined.
codec::Opened unpack_map(const codec::Codec& codec, std::span<const std::uint8_t> box, std::span<std::byte> map);

}  // namespace plimsoll::kernels
