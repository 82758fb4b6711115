// The extents of a tensor: up to eight dimensions, none negative, stored inline (no allocation, so
// a graph of 100,000 values costs what it looks like).
//
// A rank of zero is a scalar with one element; an extent of zero is an empty tensor. Products are
// checked: a shape whose element count does not fit an int64 is refused where it enters (verify),
// and `elements()` of a verified shape cannot overflow.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "plimsoll/base/check.h"
#include "plimsoll/base/result.h"

namespace plimsoll::ir {

inline constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims) {
    PLIMSOLL_CHECK(dims.size() <= kMaxRank, "rank {} above {}", dims.size(), kMaxRank);
    rank_ = static_cast<std::int8_t>(dims.size());
    std::copy(dims.begin(), dims.end(), dims_.begin());
  }
  // For dims that come from a file: rank, sign and product are checked.
  static Result<Shape> make(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return dims_[static_cast<std::size_t>(axis)]; }
  std::int64_t& operator[](int axis) { return dims_[static_cast<std::size_t>(axis)]; }
  // Not of a temporary: what they point to would be gone.
  std::span<const std::int64_t> dims() const& {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  std::span<const std::int64_t> dims() const&& = delete;
  auto begin() const& { return dims().begin(); }
  auto end() const& { return dims().end(); }
  void begin() const&& = delete;
  void end() const&& = delete;
  void push_back(std::int64_t dim) {
    PLIMSOLL_CHECK(rank_ < kMaxRank);
    dims_[static_cast<std::size_t>(rank_++)] = dim;
  }

  std::optional<std::int64_t> checked_elements() const;
  std::int64_t elements() const;
  // Product of the extents in [first, last).
  std::int64_t elements(int first, int last) const;
  // Row-major strides in elements.
  std::array<std::int64_t, kMaxRank> strides() const;

  bool operator==(const Shape& other) const {
    return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::int8_t rank_ = 0;
};

// "[2,3,4]"
std::string to_string(const Shape& shape);

// numpy's rule: aligned at the last axis, extents equal or 1; nothing when they do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace plimsoll::ir
