// Reading and writing at places that a tensor of indices names: gather, scatter, one_hot.
//
//   gather            y[a, i.., b] = data[a, indices[i..], b]        a lookup table, an embedding
//   gather_elements   y[i] = data[i with the axis replaced by indices[i]]
//   gather_nd         the last axis of indices is a multi-index into data
// and the other way round gather_grad, scatter_elements, scatter_nd, which combine what meets at
// one place by `reduction` ("none": the last one in row-major order wins; "add", "mul", "max",
// "min").
//
// Indices are int32 or int64; negative ones count from the end. They are data, so nobody can check
// them in advance: a read outside gives 0, a write outside is dropped, here and in every kernel.
// (Then a gather and its gradient stay adjoint, and no index can reach foreign memory.)
//
// Gradients read the indices only, those of "max" and "min" the values too. The gradient for "none"
// is right when no place is written twice; "mul" has none and says so.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var gather(Var data, Var indices, int axis = 0);
// dy added into zeros of the given shape.
Var gather_grad(Var dy, Var indices, int axis, ir::Shape shape);
Var gather_elements(Var data, Var indices, int axis = 0);
Var scatter_elements(Var data, Var indices, Var updates, int axis = 0,
                     std::string_view reduction = "none");
Var gather_nd(Var data, Var indices, int batch_dims = 0);
Var scatter_nd(Var data, Var indices, Var updates, std::string_view reduction = "none",
               int batch_dims = 0);

struct OneHot {
  std::int64_t depth = 0;
  int axis = -1;
  double on = 1;
  double off = 0;
  ir::DType dtype = ir::DType::kF32;
};
// A new axis of extent `depth`: `on` where it meets the index, `off` elsewhere.
Var one_hot(Var indices, const OneHot& options);

}  // namespace plimsoll::ops
