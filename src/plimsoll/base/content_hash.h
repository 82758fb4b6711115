// A hash of what a file holds, to tell whether it is still the file it was.
//
// It finds accidents: weights trained further, exported again, cut short by a full disk. It is no
// seal: whoever wants a collision can make one, so nothing is trusted because its hash agrees.
//
// Bytes are taken in pieces of 16 MiB. The hash is the checksum (checksum64.h) of the length and of
// the pieces' checksums. `release` is told of every piece that was read, so that pages of a mapped
// file need not stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace plimsoll {

std::uint64_t content_hash(
    std::span<const std::byte> bytes,
    const std::function<void(std::span<const std::byte> piece)>& release = {});

// As files write it: 16 hexadecimal digits.
std::string hash_text(std::uint64_t hash);

}  // namespace plimsoll
