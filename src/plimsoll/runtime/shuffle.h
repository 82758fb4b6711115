// An order of n things that needs no memory: which of them stands at a place, by arithmetic alone.
//
// A Feistel network permutes [0, 4^k), the smallest such range that holds n: the number is cut in
// two halves, and four times one half is changed by a hash of the other, which can be undone and so
// maps no two numbers to one. A result outside [0, n) is put in again until one is inside, after
// less than four rounds in the mean, because 4^k < 4 n.
//
// So the example of a step can be told without the steps before it: a resumed run goes on where the
// first one stopped, and an epoch of a hundred million examples takes no table.
#pragma once

#include <bit>
#include <cstdint>

#include "plimsoll/base/random.h"

namespace plimsoll::runtime {

// The thing at `place`, both in [0, count); another order for every seed.
inline std::int64_t shuffled(std::int64_t place, std::int64_t count, std::uint64_t seed) {
  const int bits = std::bit_width(static_cast<std::uint64_t>(count > 1 ? count - 1 : 1));
  const int half = (bits + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto at = static_cast<std::uint64_t>(place);
  do {
    std::uint64_t left = at >> half;
    std::uint64_t right = at & mask;
    for (std::uint64_t round = 1; round <= 12; ++round) {
      // Seeds are often neighbours: their keys must not be the same in another round.
      const std::uint64_t key = mix64(mix64(seed) + round * 0x9e3779b97f4a7c15ULL);
      const std::uint64_t next = left ^ (mix64(right * 0xd1342543de82ef95ULL + key) & mask);
      left = right;
      right = next;
    }
    at = left << half | right;
  } while (at >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(at);
}

}  // namespace plimsoll::runtime
