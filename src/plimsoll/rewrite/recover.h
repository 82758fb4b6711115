// Puts together again what exporters take apart.
//
// A model written with LayerNorm, GELU and attention reaches a file as subtractions, error
// functions and matrix products. Run like that it computes the same, but every intermediate is a
// tensor to keep or recompute, so it plans far worse than it was written. Each recovery finds one
// such pattern and replaces it by the operator that was meant:
//
//   merging        twice the same node is one; identities go; reshapes and transposes in a row
//                  become one
//   linear         x W + b, x W^T                                -> linear with bias, trans_w
//   activations    any chain of element-wise operators over one tensor that *is* gelu, silu, ...
//   norms          layer norm and rms norm from their means and roots
//   attention      softmax(q k^T * s + mask) v over heads -> attention, attention_qkv, causal
//
// Activations are not matched by shape of the formula: exporters write the same function in a dozen
// ways. The chain is evaluated at sample points and compared with the candidates
// (recover_activation.cpp).
//
// Every recovery keeps the function within rounding; intermediates that something else reads are
// left alone. `training` says that gradients will be asked for: then nothing is recovered that
// would cut one off (an attention mask has none, so a learned position bias stays apart).
//
// Cost: linear in the graph for each round; rounds until nothing changes, at most eight.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {

struct RecoverOptions {
  bool training = false;
};

Result<ir::Graph> recover_patterns(ir::Graph graph, const RecoverOptions& options = {});

// The recoveries one by one: how many places changed.
Result<int> merge_equal_nodes(GraphEditor& edit);
Result<int> simplify_movement(GraphEditor& edit);
Result<int> recover_linear(GraphEditor& edit);
Result<int> recover_activations(GraphEditor& edit);
Result<int> recover_norms(GraphEditor& edit);
Result<int> recover_attention(GraphEditor& edit, const RecoverOptions& options);

}  // namespace plimsoll::rewrite
