// A hash of what a file holds, to tell whether it is still the file it was.
//
// It finds accidents: weights trained further, exported again, cut short by a full disk. It is no
// seal: whoever wants a collision can make one, so nothing is trusted because its hash agrees.
//
// Bytes are taken in pieces of 16 MiB; each piece is hashed by four lanes of 64 bits, and the hash
// of the whole is the hash of the pieces' and of the length. `release` is told of every piece that
// was read, so that pages of a mapped file need not stay.
//
// A lane does x -> (x ^ word) * odd, folds the high half over the low one and multiplies again.
// Each step can be undone, so one changed word always changes its lane; the second product keeps
// the change of a word's highest bit from staying one bit, which the next word could undo. Cost:
// about the memory's reading speed (eight multiplications for 32 bytes).
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
