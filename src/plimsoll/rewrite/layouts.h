// Chooses how tensors lie in memory, once, for the whole training graph.
//
// Convolutions are fast on channels-last tensors with blocked weights, and slow on NCHW, where
// oneDNN falls back to im2col. Everything around them (batch norm, activations, pooling, sums,
// joins, slices, numbers by channel, channels that change groups) runs equally well on either. So
// the rule is: one region, from the first convolution to the last, lies channels last; what leaves
// it (a reshape into a classifier) is turned back. Which operators may lie in it their definitions
// say (LayoutRule).
//
//   images NCHW ─ conv(stem) ─▶ y channels last ─ batch_norm ─ conv ─ ... ─ reduce_mean ─▶ [N,C]
//                  ▲ NCHW: 3 channels fill no vector            ▲ w reordered to blocks: a node
//
// Where the seconds of operators are known (`price`), they decide instead, and the rule stands for
// what they do not know (layout_prices.h).
//
// No kernel converts anything inside: each conversion is a `reorder` node with a price, made once
// for each value and layout. Forward, data gradient and weight gradient want differently blocked
// weights, so one weight may be reordered twice a step; its gradient comes back through one more.
//
// How: nodes are walked in order and copied. `as(value, layout)` gives the value in that layout,
// putting in a reorder the first time one is needed. Which blocks a convolution wants only its
// kernel knows: it is asked through `weights_layout`; without it weights stay row-major.
//
// Invariants: the graph computes the same values (a reorder is the identity); sources, outputs and
// updates keep their types; phase update runs row-major.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/rewrite/layout_options.h"

namespace plimsoll::rewrite {

Result<ir::Graph> choose_layouts(const ir::Graph& graph, const LayoutOptions& options);
// Everything row-major but the weights, which lie as kernels want them beside such data: what the
// choice is compared with.
Result<ir::Graph> keep_row_major(const ir::Graph& graph, const LayoutOptions& options);

}  // namespace plimsoll::rewrite
