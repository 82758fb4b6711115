// Arithmetic on sizes that reports overflow instead of wrapping.
#pragma once

#include <cstdint>
#include <optional>

namespace plimsoll {

constexpr std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

constexpr std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return a / b + (a % b > 0);
}

// The next multiple of `alignment` (a positive number, not only powers of two), or nothing when it
// does not fit an int64.
constexpr std::optional<std::int64_t> checked_round_up(std::int64_t size, std::int64_t alignment) {
  return checked_multiply(ceil_div(size, alignment), alignment);
}

constexpr std::int64_t round_up(std::int64_t size, std::int64_t alignment) {
  return ceil_div(size, alignment) * alignment;
}

}  // namespace plimsoll
