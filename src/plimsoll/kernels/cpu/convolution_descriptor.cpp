#include "plimsoll/kernels/cpu/convolution_descriptor.h"

#include "plimsoll/ops/elementwise/fused_relu.h"

namespace plimsoll::kernels {
namespace {

using Desc = dnnl::memory::desc;
using dnnl::algorithm;

ConvolutionGeometry geometry_of(const ops::AttributeReader& attributes, int spatial) {
  const auto n = static_cast<std::size_t>(spatial);
  ConvolutionGeometry out;
  out.strides = attributes.integers("strides", ir::Ints(n, 1));
  out.dilations = attributes.integers("dilations", ir::Ints(n, 1));
  for (auto& dilation : out.dilations) --dilation;
  const ir::Ints pads = attributes.integers("pads", ir::Ints(2 * n, 0));
  out.begins.assign(pads.begin(), pads.begin() + spatial);
  out.ends.assign(pads.begin() + spatial, pads.end());
  out.group = attributes.integer("group");
  return out;
}

// Elements of one axis in the inner blocks.
std::int64_t block_of(const dnnl_memory_desc_t& desc, int axis) {
  const auto& blocking = desc.format_desc.blocking;
  std::int64_t out = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    if (blocking.inner_idxs[i] == axis) out *= blocking.inner_blks[i];
  }
  return out;
}

// Weights [M, C/g, ...] as oneDNN wants them with groups: [g, M/g, C/g, ...]. Where the first axis
// is blocked, its blocks fill the groups; with one channel in every group (depthwise) they run over
// the groups.
Desc grouped(const Desc& plain, std::int64_t group) {
  if (group == 1) return plain;
  const dnnl_memory_desc_t& raw = plain.data;
  dnnl_memory_desc_t out = raw;
  const bool depthwise = raw.dims[0] == group;
  out.ndims = raw.ndims + 1;
  for (int axis = raw.ndims - 1; axis >= 0; --axis) {
    out.dims[axis + 1] = raw.dims[axis];
    out.padded_dims[axis + 1] = raw.padded_dims[axis];
    out.format_desc.blocking.strides[axis + 1] = raw.format_desc.blocking.strides[axis];
  }
  const std::int64_t each = raw.dims[0] / group;
  out.dims[0] = group;
  out.dims[1] = each;
  out.padded_dims[0] = depthwise ? raw.padded_dims[0] : group;
  out.padded_dims[1] = each;
  out.format_desc.blocking.strides[0] =
      raw.format_desc.blocking.strides[0] * (depthwise ? each : each / block_of(raw, 0));
  for (int i = 0; i < raw.format_desc.blocking.inner_nblks; ++i) {
    const auto axis = raw.format_desc.blocking.inner_idxs[i];
    out.format_desc.blocking.inner_idxs[i] = depthwise && axis == 0 ? 0 : axis + 1;
  }
  return Desc(out);
}

bool weights_can_be_described(const ir::TensorType& weights, std::int64_t group) {
  if (group == 1 || weights.layout.block_count == 0) return true;
  const bool depthwise = weights.shape[0] == group;
  std::int64_t first = 1;
  for (int i = 0; i < weights.layout.block_count; ++i) {
    const auto& block = weights.layout.blocks[static_cast<std::size_t>(i)];
    if (depthwise && block.dim != 0) return false;
    if (block.dim == 0) first *= block.size;
  }
  return depthwise || weights.shape[0] / group % first == 0;
}

// The forward descriptor of a gradient is only a hint; it must exist whatever the weights' layout
// is.
dnnl::convolution_forward::primitive_desc hint_for(ConvolutionDescriptor d) {
  d.weights = Desc(d.weights.dims(), d.weights.data_type(), dnnl::memory::format_tag::any);
  d.bias = Desc();
  d.relu = false;
  return d.forward();
}

}  // namespace

ConvolutionTensors convolution_tensors(const Site& site, ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::kForward:
      return {site.in(0), site.in(1), site.out(0), site.has(2)};
    case ConvolutionDirection::kInputGradient:
      return {site.out(0), site.in(1), site.in(0), false};
    case ConvolutionDirection::kWeightGradient:
      break;
  }
  return {site.in(0), site.out(0), site.in(1), site.outputs() > 1};
}

bool can_describe(const ConvolutionTensors& t, const ops::AttributeReader& attributes) {
  const auto fine = [](ir::DType dtype) {
    return dtype == ir::DType::kF32 || dtype == ir::DType::kBF16;
  };
  return fine(t.x.dtype) && t.w.dtype == t.x.dtype && t.y.dtype == t.x.dtype &&
         t.x.shape.elements() > 0 && t.w.shape.elements() > 0 && t.y.shape.elements() > 0 &&
         weights_can_be_described(t.w, attributes.integer("group"));
}

dnnl::convolution_forward::primitive_desc ConvolutionDescriptor::forward() const {
  const auto kind = dnnl::prop_kind::forward_training;
  const auto how = algorithm::convolution_direct;
  const ConvolutionGeometry& g = geometry;
  const auto desc = bias.data.ndims == 0
                        ? dnnl::convolution_forward::desc(kind, how, x, weights, y, g.strides,
                                                          g.dilations, g.begins, g.ends)
                        : dnnl::convolution_forward::desc(kind, how, x, weights, bias, y, g.strides,
                                                          g.dilations, g.begins, g.ends);
  dnnl::primitive_attr attributes = user_scratchpad();
  if (relu) {
    dnnl::post_ops after;
    after.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
    attributes.set_post_ops(after);
  }
  return preferred(dnnl::convolution_forward::primitive_desc(desc, attributes, onednn_engine()));
}

dnnl::convolution_backward_data::primitive_desc ConvolutionDescriptor::backward_data() const {
  const ConvolutionGeometry& g = geometry;
  const dnnl::convolution_backward_data::desc desc(algorithm::convolution_direct, x, weights, y,
                                                   g.strides, g.dilations, g.begins, g.ends);
  return preferred(dnnl::convolution_backward_data::primitive_desc(
      desc, user_scratchpad(), onednn_engine(), hint_for(*this)));
}

dnnl::convolution_backward_weights::primitive_desc ConvolutionDescriptor::backward_weights() const {
  const ConvolutionGeometry& g = geometry;
  const auto how = algorithm::convolution_direct;
  const auto desc = bias.data.ndims == 0
                        ? dnnl::convolution_backward_weights::desc(how, x, weights, y, g.strides,
                                                                   g.dilations, g.begins, g.ends)
                        : dnnl::convolution_backward_weights::desc(
                              how, x, weights, bias, y, g.strides, g.dilations, g.begins, g.ends);
  return preferred(dnnl::convolution_backward_weights::primitive_desc(
      desc, user_scratchpad(), onednn_engine(), hint_for(*this)));
}

ConvolutionDescriptor describe_convolution(const ops::AttributeReader& attributes,
                                           const ConvolutionTensors& t) {
  ConvolutionDescriptor out;
  out.geometry = geometry_of(attributes, t.x.shape.rank() - 2);
  out.x = describe(t.x);
  out.y = describe(t.y);
  out.weights = grouped(describe(t.w), out.geometry.group);
  if (t.bias) out.bias = describe(t.x.dtype, {t.y.shape[1]}, {1});
  out.relu = ops::has_relu(attributes);
  return out;
}

std::optional<dnnl::memory::desc> without_groups(const Desc& chosen) {
  const dnnl_memory_desc_t& raw = chosen.data;
  if (raw.format_kind != dnnl_blocked) return std::nullopt;
  const auto& strides = raw.format_desc.blocking.strides;
  const std::int64_t each = raw.dims[1];
  const std::int64_t block = block_of(raw, 1);
  if (block_of(raw, 0) != 1 || each % block != 0 || strides[0] != strides[1] * (each / block))
    return std::nullopt;
  dnnl_memory_desc_t out = raw;
  out.ndims = raw.ndims - 1;
  for (int axis = 0; axis < out.ndims; ++axis) {
    out.dims[axis] = raw.dims[axis + 1];
    out.padded_dims[axis] = raw.padded_dims[axis + 1];
    out.format_desc.blocking.strides[axis] = strides[axis + 1];
  }
  out.dims[0] = out.padded_dims[0] = raw.dims[0] * each;
  for (int i = 0; i < raw.format_desc.blocking.inner_nblks; ++i)
    out.format_desc.blocking.inner_idxs[i] -= 1;
  return Desc(out);
}

}  // namespace plimsoll::kernels
