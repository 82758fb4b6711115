// What part each operator may have in a channels-last region, before anything lies anyhow.
//
// What the definitions (LayoutRule) and the shapes of a graph say: which operators are
// convolutions, which work on either layout, which turn channels to the end or back. Who lies
// channels last is decided elsewhere: by a rule (layouts.h) or by price (layout_prices.h).
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// Which inputs and outputs of a convolution are x, w and y (or their gradients).
struct ConvolutionForm {
  bool weights_are_output;  // conv_grad_weight
  bool x_is_output;         // conv_grad_input
};
std::optional<ConvolutionForm> convolution_form(const ir::Node& node);

// A transpose that swaps the channels' groups: [N, G, C/G, ...] to [N, C/G, G, ...].
bool swaps_groups(const ir::Node& node);
// Whether the permutation takes axis `from` to place `to` and keeps the others in order.
bool moves_channels(const ir::Node& node, int from, int to);

class LayoutRoles {
 public:
  explicit LayoutRoles(const ir::Graph& graph);

  const ir::TensorType& type(ValueId value) const { return graph_.value(value).type; }
  const ir::Shape& shape(ValueId value) const { return type(value).shape; }

  // x of a convolution, or its gradient.
  ValueId data_of(const ir::Node& node, const ConvolutionForm& form) const {
    return form.x_is_output ? node.outputs[0] : node.inputs[0];
  }
  // What takes any layout, the same for all of its tensors: not in updates.
  bool follows(const ir::Node& node) const;
  // Operators besides the element-by-element ones whose kernels take channels-last tensors.
  bool takes_channels_last(const ir::Node& node) const;
  // A mean or sum over all places of every channel.
  bool reduces_places(const ir::Node& node) const;
  // One number a channel spread over its places, into a tensor that the region reads: the gradient
  // of a mean over the places.
  bool expands_into_region(const ir::Node& node) const;
  // Operands of other ranks would have to be broadcast along axes that lie elsewhere; single
  // numbers and one number a channel ([C,1,1] beside [N,C,H,W]) are fine.
  bool broadcasts_fine(const ir::Node& node, int rank) const;
  // Somebody reads it who takes it channels last: a convolution, or what is done element by element
  // with tensors of that rank.
  bool feeds_region(ValueId value, int rank) const;
  bool feeds_swaps(ValueId value) const;

  const std::vector<NodeId>& readers(ValueId value) const { return readers_[value.index()]; }

 private:
  const ir::Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::set<int> convolved_ranks_;
};

}  // namespace plimsoll::rewrite
