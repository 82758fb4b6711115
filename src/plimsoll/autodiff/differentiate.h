// Reverse-mode differentiation by extending the graph.
//
// The gradient of a scalar is more nodes of the same graph: ordinary operators, with types, costs
// and memory like any others, so that everything downstream (planning, recompute, running) treats
// forward and backward alike, and a gradient can be differentiated again.
//
//   y = ln(x1) + x1*x2 - sin(x2)          v1 = ln x1    v4 = v1 + v2
//                                         v2 = x1*x2    y  = v4 - v3
//   walked backwards:                     v3 = sin x2
//     dy  = 1        dv3 = -dy            dx2 = dv3 * cos x2
//     dv4 = dy       dv1 = dv2 = dv4      dx2 = dx2 + dv2 * x1
//                                         dx1 = dv2 * x2,  dx1 = dx1 + dv1 / x1
//   At (2, 5): y = 11.652, dy/dx1 = 5.5, dy/dx2 = 1.716.
//
// How: nodes between `wrt` and `y` are walked once in reverse; each one's definition turns the
// adjoints of its outputs into adjoints of its inputs. A value with several readers gets the sum of
// their adjoints, as binary adds in the order in which they arrive (never re-associated, so that
// the bits do not depend on what a planner does). Paths that lead nowhere build nothing. A fused
// backward operator without a rule of its own is differentiated through its decomposition.
//
// Cost: linear in the nodes walked and built.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ops/builder.h"

namespace plimsoll::autodiff {

using ops::Builder;
using ops::Var;

struct DifferentiateOptions {
  // The adjoint of y; absent: ones of its type.
  Var seed;
  // Called as soon as the adjoint of wrt[i] is complete, in the middle of the walk: updates built
  // here stand where their gradient is ready, so that gradients are never all alive. Called only
  // for those that y depends on.
  std::function<void(std::size_t, Var)> on_complete;
};

// The adjoint of every wrt, absent where y does not depend on it. New nodes have phase backward and
// the layer of the node they differentiate.
Result<std::vector<Var>> differentiate(Builder& builder, Var y, std::span<const Var> wrt,
                                       const DifferentiateOptions& options = {});

}  // namespace plimsoll::autodiff
