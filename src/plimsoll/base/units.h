// Units and ids as types, so that a step cannot be added to an address.
//
// Quantity<Tag> is an int64 with the arithmetic that makes sense for an amount; Id<Tag> is an index
// into one vector, with none. Both are exactly as large and as fast as the integer inside.
//
//   Bytes    an amount of memory                Bytes + Bytes, Bytes * 3
//   Offset   a place in an arena                Offset + Bytes -> Offset, Offset - Offset -> Bytes
//   Step     a moment in a schedule             Step + 1
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

#include <fmt/core.h>

namespace plimsoll {

template <typename Tag>
struct Quantity {
  std::int64_t value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t amount) : value(amount) {}
  static constexpr Quantity max() { return Quantity(std::numeric_limits<std::int64_t>::max()); }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.value + b.value);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.value - b.value);
  }
  friend constexpr Quantity operator*(Quantity a, std::int64_t n) { return Quantity(a.value * n); }
};

using Bytes = Quantity<struct BytesTag>;

struct Offset {
  std::int64_t value = 0;

  constexpr Offset() = default;
  constexpr explicit Offset(std::int64_t place) : value(place) {}
  static constexpr Offset max() { return Offset(std::numeric_limits<std::int64_t>::max()); }
  constexpr auto operator<=>(const Offset&) const = default;
  friend constexpr Offset operator+(Offset a, Bytes b) { return Offset(a.value + b.value); }
  friend constexpr Offset operator-(Offset a, Bytes b) { return Offset(a.value - b.value); }
  friend constexpr Bytes operator-(Offset a, Offset b) { return Bytes(a.value - b.value); }
};

struct Step {
  std::int32_t value = 0;

  constexpr Step() = default;
  constexpr explicit Step(std::int64_t moment) : value(static_cast<std::int32_t>(moment)) {}
  constexpr auto operator<=>(const Step&) const = default;
  friend constexpr Step operator+(Step a, std::int32_t n) { return Step(a.value + n); }
};

template <typename Tag>
struct Id {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value(static_cast<std::uint32_t>(index)) {}
  constexpr auto operator<=>(const Id&) const = default;
  constexpr bool valid() const { return value != kNone; }
  constexpr std::size_t index() const { return value; }
};

using ValueId = Id<struct ValueTag>;
using NodeId = Id<struct NodeTag>;
using BufferId = Id<struct BufferTag>;

constexpr Bytes operator""_bytes(unsigned long long count) {
  return Bytes(static_cast<std::int64_t>(count));
}
constexpr Bytes operator""_KiB(unsigned long long count) {
  return Bytes(static_cast<std::int64_t>(count) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long count) {
  return Bytes(static_cast<std::int64_t>(count) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long count) {
  return Bytes(static_cast<std::int64_t>(count) << 30);
}

}  // namespace plimsoll

template <typename Tag>
struct std::hash<plimsoll::Id<Tag>> {
  std::size_t operator()(plimsoll::Id<Tag> id) const noexcept { return id.value; }
};
template <>
struct fmt::formatter<plimsoll::Bytes> : fmt::formatter<std::int64_t> {
  auto format(plimsoll::Bytes bytes, fmt::format_context& context) const
      -> fmt::format_context::iterator;
};
