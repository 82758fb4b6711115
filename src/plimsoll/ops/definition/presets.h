// What most definitions share: operators that work element by element, and those that move or sum
// elements. One output, cheap to recompute; a definition overwrites what it has otherwise.
#pragma once

#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

// One operation for each element, in any layout.
inline OpDefinition elementwise_definition(std::string_view name, int inputs, InferRule infer,
                                           Gradient gradient, InPlace in_place,
                                           EvaluateRule evaluate) {
  return {.name = name,
          .inputs = exactly(inputs),
          .outputs = exactly(1),
          .infer = infer,
          .gradient = gradient,
          .in_place = std::move(in_place),
          .cost = elementwise_cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kAny,
          .evaluate = evaluate,
          .split = split_elements};
}

// At the price of its bytes, row-major only, never in place.
inline OpDefinition moving_definition(std::string_view name, int inputs, InferRule infer,
                                      Gradient gradient, EvaluateRule evaluate,
                                      CostRule cost = bytes_cost) {
  return {.name = name,
          .inputs = exactly(inputs),
          .outputs = exactly(1),
          .infer = infer,
          .gradient = gradient,
          .in_place = InPlace::never(),
          .cost = cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate};
}

}  // namespace plimsoll::ops
