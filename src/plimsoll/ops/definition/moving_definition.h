// The definition of an operator with one input that moves or sums elements: never in place,
// row-major only.
#pragma once

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

inline OpDefinition moving_definition(std::string_view name, InferRule infer, GradientRule gradient,
                                      EvaluateRule evaluate, CostRule cost) {
  return {.name = name,
          .inputs = exactly(1),
          .outputs = exactly(1),
          .infer = infer,
          .gradient = Gradient(gradient),
          .in_place = InPlace::never(),
          .cost = cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate};
}

}  // namespace plimsoll::ops
