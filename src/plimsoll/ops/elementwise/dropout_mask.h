// Which elements a dropout keeps: a hash, not a stream of random numbers.
//
// Element i of a tensor, counted row-major whatever its layout, is kept when
//   dropout_hash(dropout_key(seed, counter), i) >= ratio * 2^32.
// The mask depends on nothing else: not on threads, on vector width or on which kernel runs. So the
// backward pass draws the same mask from the counter instead of keeping a tensor of bits, and a
// recomputed dropout is the same dropout. Two rounds of a 32-bit mixer (two multiplications each)
// so that eight or sixteen elements go through one vector register.
#pragma once

#include <cstdint>

#include "plimsoll/base/random.h"

namespace plimsoll::ops {

struct DropoutKey {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
};

// Once per tensor: seed and counter scrambled together.
constexpr DropoutKey dropout_key(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t state = seed;
  state = splitmix64(state) ^ counter;
  const std::uint64_t key = splitmix64(state);
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

constexpr std::uint32_t dropout_mix(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}

constexpr std::uint32_t dropout_hash(DropoutKey key, std::uint64_t index) {
  const auto low = static_cast<std::uint32_t>(index);
  const auto high = static_cast<std::uint32_t>(index >> 32);
  return dropout_mix(dropout_mix((low ^ key.low) + high * 0x9e3779b9U) ^ key.high);
}

// The hash as a number in [0, 1): its upper 24 bits, which a float holds exactly.
constexpr float uniform_of(std::uint32_t hash) {
  return static_cast<float>(hash >> 8) * 0x1p-24F;
}

// The smallest hash that is kept; ratio in [0, 1).
constexpr std::uint32_t dropout_threshold(double ratio) {
  return static_cast<std::uint32_t>(ratio * 4294967296.0);
}

}  // namespace plimsoll::ops
