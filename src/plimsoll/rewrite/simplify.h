// The rewrites that run on a model before it is differentiated.
//
//   relu(batch_norm(x))  ->  batch_norm{activation="relu"}(x)   one pass less, forward and backward
//   relu(a + b)          ->  add_relu(a, b)
//   relu(conv(x))        -> conv{activation="relu"}(x) for inference only: in training
//                        max_pool(relu(x)) gains more
//   max_pool(relu(x))    -> relu(max_pool(x)) ReLU keeps the small map, not the large one
//   conv that cuts the image into large patches  ->  a product of matrices (patch_product.h)
//   nodes nobody reads   ->  nothing
//
// Running before autodiff makes the gradients come out fused too: batch_norm_grad takes the sign of
// ReLU from x again, so nothing of the activation is kept for the backward pass. A result is only
// fused away when nobody else reads it.
//
// The outputs compute the same function (tests interpret both graphs); names of sources are
// untouched.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

struct SimplifyOptions {
  bool trains = true;
  bool fuse_activations = true;
  bool pool_before_relu = true;
  bool multiply_patches = true;
};

Result<ir::Graph> simplify(const ir::Graph& graph, const SimplifyOptions& options = {});

}  // namespace plimsoll::rewrite
