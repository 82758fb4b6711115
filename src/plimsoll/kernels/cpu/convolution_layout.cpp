#include "plimsoll/kernels/cpu/convolution_layout.h"

#include <omp.h>

#include "plimsoll/kernels/cpu/convolution_descriptor.h"
#include "plimsoll/kernels/cpu/depthwise.h"
#include "plimsoll/kernels/cpu/grouped.h"

namespace plimsoll::kernels {
namespace {

using Desc = dnnl::memory::desc;

std::optional<ConvolutionDirection> direction_of(const ir::Node& node) {
  if (node.op == "conv") return ConvolutionDirection::kForward;
  if (node.op == "conv_grad_input") return ConvolutionDirection::kInputGradient;
  if (node.op == "conv_grad_weight") return ConvolutionDirection::kWeightGradient;
  return std::nullopt;
}

struct Served {
  Desc weights;
  std::string_view implementation;
};

Served served(const ConvolutionDescriptor& d, ConvolutionDirection direction) {
  if (direction == ConvolutionDirection::kForward) {
    const auto pd = d.forward();
    return {pd.weights_desc(), pd.impl_info_str()};
  }
  if (direction == ConvolutionDirection::kInputGradient) {
    const auto pd = d.backward_data();
    return {pd.weights_desc(), pd.impl_info_str()};
  }
  const auto pd = d.backward_weights();
  return {pd.diff_weights_desc(), pd.impl_info_str()};
}

// Spatial axes, channels, filters: with it the product of matrices serves groups whose channels
// fill no block, where the weights as they are would leave only oneDNN's reference.
ir::Layout product_weights(const Site& site, ConvolutionTensors t, ConvolutionDirection direction) {
  ir::Layout out;
  out.rank = static_cast<std::uint8_t>(t.w.shape.rank());
  for (std::uint8_t axis = 2; axis < out.rank; ++axis) out.order[axis - 2] = axis;
  out.order[out.rank - 2] = 1;
  out.order[out.rank - 1] = 0;
  t.w.layout = out;
  const Served by = served(describe_convolution(site.attributes(), t), direction);
  return by.implementation.starts_with("ref") ? ir::Layout{} : out;
}

// Depthwise: [g, 1, 1, h, w] with a block of g is our [g, 1, h, w] with a block of axis 0.
ir::Layout depthwise_weights(const Desc& chosen, const ir::Shape& weights) {
  if (weights[1] != 1) return {};
  const auto& blocking = chosen.data.format_desc.blocking;
  if (chosen.data.format_kind != dnnl_blocked || blocking.inner_nblks != 1 ||
      blocking.inner_idxs[0] != 0)
    return {};
  ir::Layout out;
  out.rank = static_cast<std::uint8_t>(weights.rank());
  for (std::uint8_t axis = 0; axis < out.rank; ++axis) out.order[axis] = axis;
  out.block_count = 1;
  out.blocks[0] = {0, static_cast<std::uint16_t>(blocking.inner_blks[0])};
  return out;
}

}  // namespace

ir::Layout convolution_weights_layout(const ir::Graph& graph, const ir::Node& node,
                                      const CpuKernelOptions& options) {
  const auto direction = direction_of(node);
  if (!direction) return {};
  const Site site{graph, node, options.threads > 0 ? options.threads : omp_get_num_procs()};
  // Our own loops pack their filters themselves.
  if (is_depthwise(site, *direction) || is_grouped(site, *direction)) return {};
  use_threads(site.threads);
  const ConvolutionTensors t = convolution_tensors(site, *direction);
  if (!can_describe(t, site.attributes())) return {};
  try {
    ConvolutionDescriptor d = describe_convolution(site.attributes(), t);
    d.weights = Desc(d.weights.dims(), d.weights.data_type(), dnnl::memory::format_tag::any);
    const Desc chosen = served(d, *direction).weights;
    if (d.geometry.group == 1) return layout_of(chosen).value_or(ir::Layout{});
    if (t.w.shape[0] == d.geometry.group) return depthwise_weights(chosen, t.w.shape);
    const auto whole = without_groups(chosen);
    return whole ? layout_of(*whole).value_or(ir::Layout{}) : product_weights(site, t, *direction);
  } catch (const dnnl::error&) {
    return {};
  }
}

}  // namespace plimsoll::kernels
