#include "plimsoll/rewrite/layout_roles.h"

#include <algorithm>

#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {

std::optional<ConvolutionForm> convolution_form(const ir::Node& node) {
  if (node.op == "conv") return ConvolutionForm{false, false};
  if (node.op == "conv_grad_input") return ConvolutionForm{false, true};
  if (node.op == "conv_grad_weight") return ConvolutionForm{true, false};
  return std::nullopt;
}

bool swaps_groups(const ir::Node& node) {
  ir::Ints perm = node.attributes.integers("perm");
  if (perm.size() < 4 || perm[1] != 2 || perm[2] != 1) return false;
  std::swap(perm[1], perm[2]);
  return std::is_sorted(perm.begin(), perm.end());
}

bool moves_channels(const ir::Node& node, int from, int to) {
  ir::Ints perm = node.attributes.integers("perm");
  if (perm.size() <= static_cast<std::size_t>(std::max(from, to)) ||
      perm[static_cast<std::size_t>(to)] != from)
    return false;
  perm.erase(perm.begin() + to);
  return std::is_sorted(perm.begin(), perm.end());
}

LayoutRoles::LayoutRoles(const ir::Graph& graph) : graph_(graph), readers_(ir::readers(graph)) {
  for (const ir::Node& node : graph.nodes)
    if (node.op == "conv") convolved_ranks_.insert(shape(node.inputs[0]).rank());
}

bool LayoutRoles::takes_channels_last(const ir::Node& node) const {
  return ops::definition_of(node).layout == ops::LayoutRule::kChannels;
}

bool LayoutRoles::follows(const ir::Node& node) const {
  if (node.phase == ir::Phase::kUpdate || node.op == "expand") return false;
  const bool elementwise = ops::definition_of(node).layout == ops::LayoutRule::kAny &&
                           node.op != "reorder" && node.op != "fill";
  return elementwise || takes_channels_last(node);
}

bool LayoutRoles::feeds_region(ValueId value, int rank) const {
  const auto& reading = readers(value);
  return std::any_of(reading.begin(), reading.end(), [&](NodeId reader) {
    const ir::Node& node = graph_.node(reader);
    if (node.phase == ir::Phase::kUpdate) return false;
    if (convolution_form(node) || takes_channels_last(node)) return true;
    return rank > 3 && ops::definition_of(node).layout == ops::LayoutRule::kAny &&
           node.op != "reorder" && broadcasts_fine(node, rank);
  });
}

bool LayoutRoles::feeds_swaps(ValueId value) const {
  const auto& reading = readers(value);
  return !reading.empty() && std::all_of(reading.begin(), reading.end(), [&](NodeId reader) {
    return graph_.node(reader).op == "transpose" && swaps_groups(graph_.node(reader));
  });
}

bool LayoutRoles::broadcasts_fine(const ir::Node& node, int rank) const {
  if (takes_channels_last(node)) return true;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    if (!input.valid()) return true;
    const ir::Shape& extents = shape(input);
    return extents.rank() == rank || extents.elements() == 1 ||
           (extents.rank() == rank - 1 && extents.elements() == extents[0]);
  });
}

bool LayoutRoles::reduces_places(const ir::Node& node) const {
  if (node.op != "reduce_mean" && node.op != "reduce_sum") return false;
  const int rank = shape(node.inputs[0]).rank();
  ir::Ints axes = node.attributes.integers("axes");
  for (std::int64_t& axis : axes) axis = axis < 0 ? axis + rank : axis;
  std::sort(axes.begin(), axes.end());
  if (static_cast<int>(axes.size()) != rank - 2) return false;
  for (int i = 0; i < rank - 2; ++i) {
    if (axes[static_cast<std::size_t>(i)] != i + 2) return false;
  }
  return true;
}

bool LayoutRoles::expands_into_region(const ir::Node& node) const {
  if (node.op != "expand") return false;
  const ir::Shape& from = shape(node.inputs[0]);
  const ir::Shape& to = shape(node.outputs[0]);
  if (to.rank() < 3 || from.rank() != to.rank() || from.elements(2, from.rank()) != 1) return false;
  return convolved_ranks_.contains(to.rank()) && !readers(node.outputs[0]).empty();
}

}  // namespace plimsoll::rewrite
