// The formulas of functions of two numbers that are no operators of C++, each written once for the
// reference evaluation and the kernels. Sums, differences, products and comparisons are std::plus<>
// and its kin.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>

#include "plimsoll/base/inline.h"

namespace plimsoll::ops {

// An integer divided by zero gives zero here; frameworks leave it undefined.
struct Quotient {
  template <std::floating_point T>
  PLIMSOLL_INLINE T operator()(T a, T b) const {
    return a / b;
  }
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return b == 0 ? 0 : a / b; }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    if (b == 0) return 0;
    return b == -1 ? static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(a)) : a / b;
  }
};

// A NaN in either operand is the result; of equal operands it is the first.
struct Maximum {
  PLIMSOLL_INLINE auto operator()(auto a, auto b) const { return a >= b || a != a ? a : b; }
};
struct Minimum {
  PLIMSOLL_INLINE auto operator()(auto a, auto b) const { return a <= b || a != a ? a : b; }
};

struct RealPower {
  PLIMSOLL_INLINE auto operator()(std::floating_point auto a, std::floating_point auto b) const {
    return std::pow(a, b);
  }
};

// ReLU of the sum, which a NaN passes.
struct AddRelu {
  PLIMSOLL_INLINE auto operator()(std::floating_point auto a, std::floating_point auto b) const {
    const auto sum = a + b;
    return sum < 0 ? 0 : sum;
  }
};

// Anything but zero is true.
struct LogicalAnd {
  PLIMSOLL_INLINE bool operator()(auto a, auto b) const { return (a != 0) & (b != 0); }
};
struct LogicalOr {
  PLIMSOLL_INLINE bool operator()(auto a, auto b) const { return (a != 0) | (b != 0); }
};
struct LogicalXor {
  PLIMSOLL_INLINE bool operator()(auto a, auto b) const { return (a != 0) != (b != 0); }
};

}  // namespace plimsoll::ops
