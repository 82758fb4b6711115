// Mixed precision without copies in fp32, for devices whose kernels read narrow numbers and compute
// with wide ones inside.
//
//   cross_entropy(cast(logits))        ->  cross_entropy(logits), and its gradient narrow at once
//   adamw(w, cast(gradient), ...)      ->  adamw(w, gradient, ...)
//   batch_norm(x, cast(g), cast(b))    ->  batch_norm(x, g, b) with fp32 parameters; layer_norm,
//                                          rms_norm and their gradients likewise
//
// The first two leave every bit as it is: a kernel that widens what it reads computes with the
// numbers that a cast would have written, and a gradient that was cast down is rounded once
// either way. With the third, parameters of norms keep their digits, as in PyTorch's autocast.
// For gpt2 with 16 x 1,024 tokens this is 3.3 GB that is never written.
//
// Runs on a training graph, before layouts are chosen.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> drop_casts(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
