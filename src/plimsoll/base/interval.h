// A half-open interval [begin, end). Every range of steps, bytes or indices in the codebase is one.
#pragma once

#include <compare>

namespace plimsoll {

template <typename T>
struct Interval {
  T begin{};
  T end{};

  constexpr auto operator<=>(const Interval&) const = default;
  constexpr bool empty() const { return !(begin < end); }
  constexpr bool contains(T point) const { return !(point < begin) && point < end; }
  constexpr bool meets(const Interval& other) const {
    return begin < other.end && other.begin < end;
  }
};

}  // namespace plimsoll
