#include "plimsoll/ops/elementwise/add_relu.h"

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/activation.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/binary_formulas.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_add_relu(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 1, call.shape(0)));
  return std::vector{call.type(0)};
}

std::vector<Var> add_relu_gradient(const Backward& g) {
  const Var adjoint = relu_grad(g.dy(), g.out(0));
  return {adjoint, adjoint};
}

void evaluate_add_relu(const Evaluation& e) {
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    e.out().reals[i] = AddRelu()(e.in(0).reals[i], e.in(1).reals[i]);
  }
}

// add_relu_grad(a, b, y) -> relu_grad(a + b, y): what flows back into the end of a residual block
// comes from two sides.

Result<std::vector<TensorType>> infer_add_relu_grad(const Call& call) {
  for (const int input : {1, 2}) PLIMSOLL_RETURN_IF_ERROR(expect_like(call, input, 0));
  return infer_add_relu(call);
}

void evaluate_add_relu_grad(const Evaluation& e) {
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    const double sum = e.in(0).reals[i] + e.in(1).reals[i];
    e.out().reals[i] = e.in(2).reals[i] > 0 ? sum : 0;
  }
}

std::vector<Var> decompose_add_relu_grad(const Decomposition& d) {
  return {relu_grad(d.in(0) + d.in(1), d.in(2))};
}

}  // namespace

std::vector<OpDefinition> add_relu_definitions() {
  return {{.name = "add_relu_grad",
           .inputs = exactly(3),
           .outputs = exactly(1),
           .infer = infer_add_relu_grad,
           .gradient = Gradient::of_decomposition(),
           .in_place = InPlace::over_any_of({{0, 0}, {0, 1}, {0, 2}}),
           .cost = cost_per_element<2>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kAny,
           .evaluate = evaluate_add_relu_grad,
           .decompose = decompose_add_relu_grad},
          {.name = "add_relu",
           .inputs = exactly(2),
           .outputs = exactly(1),
           .infer = infer_add_relu,
           .gradient = Gradient(add_relu_gradient),
           .in_place = InPlace::over_any_of({{0, 0}, {0, 1}}),
           .cost = cost_per_element<2>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kAny,
           .evaluate = evaluate_add_relu}};
}

}  // namespace plimsoll::ops
