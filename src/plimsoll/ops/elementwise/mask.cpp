#include "plimsoll/ops/elementwise/mask.h"

#include <algorithm>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/presets.h"
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
  PLIMSOLL_RETURN_IF_ERROR(expect_type(call, 1, ir::DType::kBit, call.shape(0)));
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
  return elementwise_definition(name, 1, infer_mask, Gradient::none(), InPlace::never(), evaluate);
}

}  // namespace

std::vector<OpDefinition> mask_definitions() {
  const std::vector<OpDefinition> activations = activation_definitions();
  return {
      mask_definition("positive_mask", evaluate_positive),
      mask_definition("inside_mask", evaluate_inside)
          .having(std::ranges::find(activations, "clip", &OpDefinition::name)->attributes),
      elementwise_definition("masked", 2, infer_masked, Gradient(masked_gradient), InPlace::over(0),
                             evaluate_masked),
  };
}

}  // namespace plimsoll::ops
