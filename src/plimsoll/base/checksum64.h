// XXH64 of bytes: a checksum at the speed of memory. It finds damage, not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll {

std::uint64_t checksum64(std::span<const std::byte> bytes);

}  // namespace plimsoll
