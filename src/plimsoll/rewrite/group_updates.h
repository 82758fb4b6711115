// Updates of small weights in one kernel, for devices on which starting one takes longer than the
// update itself.
//
//   adamw x 240 small weights of resnet101   ->   adamw_group x 15
//
// Weights of at most 64 Ki elements are grouped in the order of their updates, sixteen at a time,
// where options, step and the gradients' type are the same; a group stands where the last of its
// updates stood. Until then their gradients are kept: 4 MiB at most.
//
//   batch_norm_update x 104 of resnet101   ->   batch_norm_update_group x 6, and 8 that are left
//
// Running statistics likewise: they are vectors of a few hundred numbers.
//
// Runs last, after layouts: what lies anyhow stays so.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> group_updates(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
