#include "plimsoll/ir/shape.h"

#include <fmt/ranges.h>

#include "plimsoll/base/checked.h"

namespace plimsoll::ir {

Result<Shape> Shape::make(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank)
    return bad_input("shape has rank {}, at most {} are supported", dims.size(), kMaxRank);
  for (const std::int64_t dim : dims) {
    if (dim < 0) return bad_input("shape has the negative extent {}", dim);
  }
  Shape shape(dims);
  if (!shape.checked_elements())
    return bad_input("shape {} has more elements than fit 64 bits", to_string(shape));
  return shape;
}

// Overflow is judged without the zero extents: [2^40, 2^40, 0] is refused, so that a slice or a
// product over some of the axes cannot overflow either.
std::optional<std::int64_t> Shape::checked_elements() const {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t dim : dims()) {
    if (dim == 0) {
      empty = true;
      continue;
    }
    const auto next = checked_multiply(product, dim);
    if (!next) return std::nullopt;
    product = *next;
  }
  return empty ? 0 : product;
}

std::int64_t Shape::elements() const {
  return elements(0, rank_);
}

std::int64_t Shape::elements(int first, int last) const {
  std::int64_t product = 1;
  for (int axis = first; axis < last; ++axis) product *= (*this)[axis];
  return product;
}

std::array<std::int64_t, kMaxRank> Shape::strides() const {
  std::array<std::int64_t, kMaxRank> out{};
  std::int64_t stride = 1;
  for (int axis = rank_ - 1; axis >= 0; --axis) {
    out[static_cast<std::size_t>(axis)] = stride;
    stride *= (*this)[axis];
  }
  return out;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.dims(), ","));
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape out = longer;
  const int shift = longer.rank() - shorter.rank();
  for (int axis = 0; axis < shorter.rank(); ++axis) {
    const std::int64_t x = longer[axis + shift];
    const std::int64_t y = shorter[axis];
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[axis + shift] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace plimsoll::ir
