// A logarithm that is the same on every machine: bits and plain arithmetic, no libm.
//
// Orders are computed from it, and --deterministic promises the same offsets everywhere. Absolute
// error below 0.009; strictly monotone on doubles that differ by more than that.
#pragma once

#include <bit>
#include <cstdint>

namespace plimsoll::pack {

// log2 of a positive number.
inline double stable_log2(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const double exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  // The parabola through (1,0), (1.5, 0.585), (2,1).
  return exponent + (m - 1) * (1.3399 - 0.3399 * (m - 1));
}

}  // namespace plimsoll::pack
