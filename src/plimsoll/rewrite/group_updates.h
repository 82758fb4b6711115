// Updates of sixteen weights in one kernel, for devices on which starting one takes as long as the
// update itself, or longer.
//
//   adamw x 304 of resnet101's 314   ->   adamw_group x 19
//
// Weights of at most 1 Mi elements are grouped in the order of their updates, sixteen at a time,
// where options, step and the gradients' type are the same; a group stands where the last of its
// updates stood. Until then their gradients are kept: 64 MiB at most, 12 MiB for resnet101, whose
// sixteen are those of two blocks. Larger weights fill a card by themselves.
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
