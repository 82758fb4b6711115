// What the choice of layouts (layouts.h) asks of those who know kernels and prices.
#pragma once

#include <cstdint>
#include <functional>

#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// Of one node with its operands lying as they do.
struct LayoutPrice {
  double seconds = 0;
  bool measured = false;  // else estimated, by a law that knows no layouts
};

// The layout a convolution (or a gradient of one) wants for its weights, the other tensors lying as
// the node in the graph says.
using WeightsLayout = std::function<ir::Layout(const ir::Graph&, const ir::Node&)>;
// The same answers, asked for once for each signature: to give them, a library compiles.
WeightsLayout asked_once(WeightsLayout ask);

struct LayoutOptions {
  WeightsLayout weights_layout;
  // A convolution of fewer input channels takes its input as it comes.
  std::int64_t least_channels = 8;
  // Absent: the rule alone.
  std::function<LayoutPrice(const ir::Graph&, const ir::Node&)> price = {};
  // Weights lie as their convolutions read them from the start (lay_out_weights.h).
  bool weights_lie_so = false;
};

}  // namespace plimsoll::rewrite
