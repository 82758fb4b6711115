// What happens to state at the end of a step: optimizer updates, counters, sums of gradients.
//
// Each result is the next version of an input and always takes its place. Formulas as PyTorch's,
// with g the gradient times `scale` (a scalar, absent: 1, from clipping by the global norm):
//
//   sgd       g += decay*w;  w -= lr*g
//   momentum  g += decay*w;  m = momentum*m + g;  w -= lr*m
//   adam      g += decay*w;  m = b1*m + (1-b1)*g;  v = b2*v + (1-b2)*g*g
//             w -= lr/(1-b1^t) * m / (sqrt(v)/sqrt(1-b2^t) + epsilon)
//   adamw     w -= lr*decay*w first, and no decay in g
//
// The step t is a counter that was already counted up: 1 in the first step.
//
// Those with moments can update a part of a weight, so that a large weight's moments need not be
// there all at once (rewrite/split_updates.h): with the attribute `first`, moments are one axis of
// so many elements, those of the weight from `first` on, row by row, and the rest of the weight
// stays what it was. `of` names the whole moments, one in a line: what a checkpoint calls them.
#pragma once

#include <optional>

#include "plimsoll/ops/definition/attribute_spec.h"
#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

struct UpdateOptions {
  double lr = 1e-3;
  double weight_decay = 0;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// adamw_group: adamw of so many weights at once, for devices on which starting a kernel takes
// longer than updating a small tensor. Its inputs are the weights, their gradients, their first and
// their second moments, and the step; its results the weights, then the first and the second
// moments.
inline constexpr int kUpdateGroup = 16;

struct Updated {
  Var w;
  Var m;  // absent for sgd
  Var v;  // adam and adamw only
};

Updated sgd(Var w, Var g, const UpdateOptions& options, Var scale = {});
Updated momentum(Var w, Var g, Var m, const UpdateOptions& options, Var scale = {});
Updated adam(Var w, Var g, Var m, Var v, Var step, const UpdateOptions& options, Var scale = {});
Updated adamw(Var w, Var g, Var m, Var v, Var step, const UpdateOptions& options, Var scale = {});
Var increment(Var counter, std::int64_t by = 1);

// The first element of the part that an update with these attributes is of; none: of all.
std::optional<std::int64_t> first_of_update(const AttributeReader& attributes);
PLIMSOLL_OPERATOR_OF_TWO(accumulate)

}  // namespace plimsoll::ops
