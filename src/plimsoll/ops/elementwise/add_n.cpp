#include <span>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/binary.h"

namespace plimsoll::ops {
namespace {

// add_n(a, b, c[, d]) -> a + b + c + d, from left to right and rounded once: the gradients that
// reach a value from several readers.

Result<std::vector<TensorType>> infer_add_n(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  for (int input = 1; input < call.size(); ++input) {
    PLIMSOLL_RETURN_IF_ERROR(expect_like(call, input, 0));
  }
  return std::vector{call.type(0)};
}

void evaluate_add_n(const Evaluation& e) {
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    double sum = e.in(0).reals[i];
    for (const Array* term : std::span(e.inputs).subspan(1)) sum += term->reals[i];
    e.out().reals[i] = sum;
  }
}

std::vector<Var> decompose_add_n(const Decomposition& d) {
  Var sum = d.in(0);
  for (const Var& term : d.inputs.subspan(1)) sum = sum + term;
  return {sum};
}

}  // namespace

std::vector<OpDefinition> add_n_definitions() {
  return {{.name = "add_n",
           .inputs = between(3, 4),
           .outputs = exactly(1),
           .infer = infer_add_n,
           .gradient = Gradient::of_decomposition(),
           .in_place = InPlace::over_any_of({{0, 0}, {0, 1}, {0, 2}, {0, 3}}),
           .cost = cost_per_element<3>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kAny,
           .evaluate = evaluate_add_n,
           .decompose = decompose_add_n,
           .split = split_elements}};
}

}  // namespace plimsoll::ops
