// Chooses how tensors lie in memory, once, for the whole training graph.
//
// Convolutions are fast on channels-last tensors with blocked weights, and slow on NCHW, where
// oneDNN falls back to im2col. Everything around them (batch norm, activations, pooling, sums,
// joins, slices, numbers by channel, channels that change groups) runs equally well on either, so
// there is one region, from the first convolution to the last, that lies channels last; what leaves
// it (a reshape into a classifier) is turned back. Which operators may lie in it their definitions
// say (LayoutRule).
//
//   images NCHW ─ conv(stem) ─▶ y channels last ─ batch_norm ─ conv ─ ... ─ reduce_mean ─▶ [N,C]
//                  ▲ NCHW: 3 channels fill no vector            ▲ w reordered to blocks: a node
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

#include <functional>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

struct LayoutOptions {
  // The layout a convolution (or a gradient of one) wants for its weights, the other tensors lying
  // as the node in the graph says.
  std::function<ir::Layout(const ir::Graph&, const ir::Node&)> weights_layout;
  // A convolution of fewer input channels takes its input as it comes.
  std::int64_t least_channels = 8;
};

Result<ir::Graph> choose_layouts(const ir::Graph& graph, const LayoutOptions& options);

}  // namespace plimsoll::rewrite
