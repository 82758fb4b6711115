#include "plimsoll/ops/elementwise/mask.h"

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/activation_formulas.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_mask(const Call& call) {
  PLIMSOLL_TRY(std::vector<TensorType> out, same_as_first_float(call));
  out[0].dtype = ir::DType::kBit;
  return out;
}

Result<std::vector<TensorType>> infer_masked(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, 1, ir::DType::kBit));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 1, call.shape(0)));
  return same_as_first_float(call);
}

void evaluate_positive(const Evaluation& e) {
  for (std::size_t i = 0; i < e.out().integers.size(); ++i) {
    e.out().integers[i] = e.in(0).reals[i] > 0;
  }
}

void evaluate_inside(const Evaluation& e) {
  const Clip<ReferenceMath> clip(e.attributes);
  for (std::size_t i = 0; i < e.out().integers.size(); ++i) {
    e.out().integers[i] = clip.inside(e.in(0).reals[i]);
  }
}

void evaluate_masked(const Evaluation& e) {
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    e.out().reals[i] = e.in(1).integers[i] != 0 ? e.in(0).reals[i] : 0;
  }
}

std::vector<Var> masked_gradient(const Backward& g) {
  return {masked(g.dy(), g.in(1)), Var()};
}

OpDefinition mask_definition(std::string_view name, EvaluateRule evaluate) {
  return {.name = name,
          .inputs = exactly(1),
          .outputs = exactly(1),
          .infer = infer_mask,
          .gradient = Gradient::none(),
          .in_place = InPlace::never(),
          .cost = elementwise_cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kAny,
          .evaluate = evaluate};
}

}  // namespace

Var masked(Var dy, Var mask) {
  return dy.builder().call1("masked", {dy, mask});
}

std::vector<OpDefinition> mask_definitions() {
  return {
      mask_definition("positive_mask", evaluate_positive),
      mask_definition("inside_mask", evaluate_inside),
      {.name = "masked",
       .inputs = exactly(2),
       .outputs = exactly(1),
       .infer = infer_masked,
       .gradient = Gradient(masked_gradient),
       .in_place = InPlace::over(0),
       .cost = elementwise_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kAny,
       .evaluate = evaluate_masked},
  };
}

}  // namespace plimsoll::ops
