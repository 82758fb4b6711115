#include "plimsoll/ops/movement/scatter_reduction.h"

#include <algorithm>

namespace plimsoll::ops {

Status check_indices(const TensorType& indices) {
  if (indices.dtype != ir::DType::kI32 && indices.dtype != ir::DType::kI64) {
    return bad_input("the indices are {}, expects int32 or int64", ir::name(indices.dtype));
  }
  return {};
}

AttributeSpec reduction_attribute() {
  return attribute::choice("reduction", {"none", "add", "mul", "max", "min"});
}

Reduction reduction_of(const AttributeReader& attributes) {
  const std::string text = attributes.text("reduction");
  if (text == "add") return Reduction::kAdd;
  if (text == "mul") return Reduction::kMul;
  if (text == "max") return Reduction::kMax;
  if (text == "min") return Reduction::kMin;
  return Reduction::kNone;
}

namespace {

double combined(double a, double b, Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone:
      return b;
    case Reduction::kAdd:
      return a + b;
    case Reduction::kMul:
      return a * b;
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
  }
  return b;
}

std::int64_t combined(std::int64_t a, std::int64_t b, Reduction reduction) {
  const auto left = static_cast<std::uint64_t>(a);
  const auto right = static_cast<std::uint64_t>(b);
  switch (reduction) {
    case Reduction::kNone:
      return b;
    case Reduction::kAdd:
      return static_cast<std::int64_t>(left + right);
    case Reduction::kMul:
      return static_cast<std::int64_t>(left * right);
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
  }
  return b;
}

}  // namespace

void combine(Array& y, std::int64_t at, const Array& x, std::int64_t from, Reduction reduction) {
  const auto to = static_cast<std::size_t>(at);
  const auto source = static_cast<std::size_t>(from);
  if (y.is_real()) {
    y.reals[to] = combined(y.reals[to], x.reals[source], reduction);
  } else {
    y.integers[to] = combined(y.integers[to], x.integers[source], reduction);
  }
}

}  // namespace plimsoll::ops
