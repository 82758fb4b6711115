// A handle on a value of a graph under construction: what a person writing a model holds.
//
//   Var h = relu(linear(x, w1, b1));
//   Var y = h * scale + 1.0;
//
// A Var is two words, copied freely, and valid as long as its Builder. A default Var is absent: an
// optional input that is not given, an adjoint that is not there.
#pragma once

#include "plimsoll/base/units.h"
#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::ops {

class Builder;

class Var {
 public:
  Var() = default;
  Var(Builder* builder, ValueId id) : builder_(builder), id_(id) {}

  explicit operator bool() const { return builder_ != nullptr; }
  ValueId id() const { return id_; }
  Builder& builder() const { return *builder_; }
  const ir::TensorType& type() const;
  // A copy: a reference into the graph would dangle as soon as the next node is built, and in
  // `sum_to(a * b, x.shape())` the compiler may take the shape before it builds a * b.
  ir::Shape shape() const { return type().shape; }
  ir::DType dtype() const { return type().dtype; }
  int rank() const { return shape().rank(); }
  std::int64_t dim(int axis) const { return shape()[axis < 0 ? axis + rank() : axis]; }

 private:
  Builder* builder_ = nullptr;
  ValueId id_;
};

}  // namespace plimsoll::ops
