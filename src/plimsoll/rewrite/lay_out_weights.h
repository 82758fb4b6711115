// Weights that lie as their convolutions want them, also while they are trained.
//
// A weight, its moments and what updates them are changed element by element, so they may lie
// anyhow. Where every convolution reads a weight in one layout and its gradient comes in the same
// one, nothing has to be converted:
//
//   w ─ cast ─ reorder ─▶ conv, conv_grad_input       w@L ─ cast@L ─▶ conv, conv_grad_input
//   conv_grad_weight ─ reorder ─▶ adamw(w, ., m, v)   conv_grad_weight ─▶ adamw(w@L, ., m@L, v@L)
//
// Content comes and goes row-major: whoever fills or reads a source converts it
// (runtime/layout_copy.h).
// hoist_reorders.h does the same for weights that nothing updates. On devices whose forward and
// backward kernels want different layouts nothing changes.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> lay_out_weights(ir::Graph graph);

}  // namespace plimsoll::rewrite
