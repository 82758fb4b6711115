#include "plimsoll/kernels/cpu/convolution.h"

#include <omp.h>

#include <array>
#include <limits>
#include <mutex>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/channels.h"
#include "plimsoll/kernels/cpu/convolution_layout.h"
#include "plimsoll/kernels/cpu/onednn.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/vectorize.h"
#include "plimsoll/ops/elementwise/fused_relu.h"

namespace plimsoll::kernels {
namespace {

using Dims = dnnl::memory::dims;
using Desc = dnnl::memory::desc;
using dnnl::algorithm;
using dnnl::prop_kind;

struct Geometry {
  Dims strides;
  Dims dilations;  // oneDNN's: 0 is none
  Dims begins;
  Dims ends;
  std::int64_t group = 1;
};

Geometry geometry_of(const ir::Attributes& attributes, int spatial) {
  const auto n = static_cast<std::size_t>(spatial);
  Geometry out;
  out.strides = attributes.integers("strides", ir::Ints(n, 1));
  out.dilations = attributes.integers("dilations", ir::Ints(n, 1));
  for (auto& dilation : out.dilations) --dilation;
  const ir::Ints pads = attributes.integers("pads", ir::Ints(2 * n, 0));
  out.begins.assign(pads.begin(), pads.begin() + spatial);
  out.ends.assign(pads.begin() + spatial, pads.end());
  out.group = attributes.integer("group", 1);
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

// The way back, for what oneDNN chose; nothing where groups and their channels do not make one
// axis.
std::optional<Desc> ungrouped(const Desc& chosen) {
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

// The three tensors of a convolution whatever its direction: x, w and y (or their gradients).
struct Tensors {
  ir::TensorType x;
  ir::TensorType w;
  ir::TensorType y;
  bool bias = false;
};

bool supported(const Tensors& t, std::int64_t group) {
  const auto fine = [](ir::DType dtype) {
    return dtype == ir::DType::kF32 || dtype == ir::DType::kBF16;
  };
  return fine(t.x.dtype) && t.w.dtype == t.x.dtype && t.y.dtype == t.x.dtype &&
         t.x.shape.elements() > 0 && t.w.shape.elements() > 0 && t.y.shape.elements() > 0 &&
         weights_can_be_described(t.w, group);
}

// The primitive descriptors of the three directions. `weights` may be of format `any`.
struct Direction {
  Geometry geometry;
  Desc x;
  Desc weights;
  Desc y;
  Desc bias;
  bool relu = false;

  dnnl::convolution_forward::primitive_desc forward() const {
    const auto kind = prop_kind::forward_training;
    const auto how = algorithm::convolution_direct;
    const Geometry& g = geometry;
    const auto desc =
        bias.data.ndims == 0
            ? dnnl::convolution_forward::desc(kind, how, x, weights, y, g.strides, g.dilations,
                                              g.begins, g.ends)
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

  dnnl::convolution_backward_data::primitive_desc backward_data() const {
    const Geometry& g = geometry;
    // The forward descriptor is only a hint; it must exist whatever the weights' layout is.
    const auto hint = hint_with_any_weights();
    const dnnl::convolution_backward_data::desc desc(algorithm::convolution_direct, x, weights, y,
                                                     g.strides, g.dilations, g.begins, g.ends);
    return preferred(dnnl::convolution_backward_data::primitive_desc(desc, user_scratchpad(),
                                                                     onednn_engine(), hint));
  }

  dnnl::convolution_backward_weights::primitive_desc backward_weights() const {
    const Geometry& g = geometry;
    const auto hint = hint_with_any_weights();
    const auto how = algorithm::convolution_direct;
    const auto desc = bias.data.ndims == 0
                          ? dnnl::convolution_backward_weights::desc(how, x, weights, y, g.strides,
                                                                     g.dilations, g.begins, g.ends)
                          : dnnl::convolution_backward_weights::desc(
                                how, x, weights, bias, y, g.strides, g.dilations, g.begins, g.ends);
    return preferred(dnnl::convolution_backward_weights::primitive_desc(desc, user_scratchpad(),
                                                                        onednn_engine(), hint));
  }

 private:
  dnnl::convolution_forward::primitive_desc hint_with_any_weights() const {
    Direction hint = *this;
    hint.weights = Desc(weights.dims(), weights.data_type(), dnnl::memory::format_tag::any);
    hint.bias = Desc();
    hint.relu = false;
    return hint.forward();
  }
};

Direction direction_of(const ir::Attributes& attributes, const Tensors& t) {
  Direction out;
  out.geometry = geometry_of(attributes, t.x.shape.rank() - 2);
  out.x = describe(t.x);
  out.y = describe(t.y);
  out.weights = grouped(describe(t.w), out.geometry.group);
  if (t.bias) out.bias = describe(t.x.dtype, {t.y.shape[1]}, {1});
  out.relu = ops::has_relu(attributes);
  return out;
}

// What plays x, w and y in the node.
std::optional<Tensors> tensors_of(const Site& site) {
  if (site.node.op == "conv") return Tensors{site.in(0), site.in(1), site.out(0), site.has(2)};
  if (site.node.op == "conv_grad_input") return Tensors{site.out(0), site.in(1), site.in(0), false};
  if (site.node.op == "conv_grad_weight")
    return Tensors{site.in(0), site.out(0), site.in(1), site.outputs() > 1};
  return std::nullopt;
}

std::int64_t group_of(const Site& site) {
  return site.attributes().integer("group", 1);
}

}  // namespace

namespace {

// y + bias along a row of channels, y + one number of it along a plane of one channel; then ReLU
// where asked.
PLIMSOLL_VECTORIZED void finish_row(float* y, const float* bias, std::int64_t n, float least) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = y[i] + bias[i];
    y[i] = sum < least ? least : sum;
  }
}

PLIMSOLL_VECTORIZED void finish_plane(float* y, float bias, std::int64_t n, float least) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float sum = y[i] + bias;
    y[i] = sum < least ? least : sum;
  }
}

// What oneDNN's products of matrices leave to do: they add the bias and apply ReLU in a pass of
// their own, which takes several times as long as this one.
struct Finish {
  Channels channels;
  bool bias;
  bool relu;
  std::vector<float> zeros;  // instead of a bias

  Finish(const ir::TensorType& y, bool with_bias, bool with_relu)
      : channels(channels_of(y)),
        bias(with_bias),
        relu(with_relu),
        zeros(bias ? 0 : static_cast<std::size_t>(y.shape[1]), 0.0F) {}

  bool any() const { return bias || relu; }

  void run(const Arguments& a) const {
    const float least = relu ? 0.0F : -std::numeric_limits<float>::infinity();
    const std::int64_t width = channels.channels;
    if (channels.last) {
      const float* shift = bias ? input<float>(a, 2) : zeros.data();
      parallel_ranges(channels.batch * channels.plane, row_grain(width),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i)
                          finish_row(output<float>(a) + i * width, shift, width, least);
                      });
      return;
    }
    parallel_each(channels.planes(), [&](std::int64_t p) {
      finish_plane(output<float>(a) + p * channels.plane,
                   bias ? input<float>(a, 2)[p % width] : 0.0F, channels.plane, least);
    });
  }
};

}  // namespace

std::unique_ptr<Kernel> make_convolution(const Site& site) {
  const Tensors t = *tensors_of(site);
  if (!supported(t, group_of(site))) return nullptr;
  Direction d = direction_of(site.attributes(), t);
  auto pd = d.forward();
  const Finish finish(site.out(), t.bias, d.relu);
  const bool own = finish.any() && finish.channels.valid && is_f32(site.out()) &&
                   std::string_view(pd.impl_info_str()).starts_with("gemm");
  if (own) {
    d.relu = false;
    d.bias = Desc();
    pd = d.forward();
  }
  std::vector<Primitive::Binding> bindings = {reads(0, DNNL_ARG_SRC, d.x),
                                              reads(1, DNNL_ARG_WEIGHTS, d.weights),
                                              writes(0, DNNL_ARG_DST, d.y)};
  if (t.bias && !own) bindings.push_back(reads(2, DNNL_ARG_BIAS, d.bias));
  Primitive primitive(dnnl::convolution_forward(pd), pd.scratchpad_desc(), bindings);
  if (!own) return std::make_unique<PrimitiveKernel>(site, std::move(primitive));
  const Bytes scratch = primitive.scratch();
  return make_kernel(
      site,
      [=](const Arguments& a) mutable {
        primitive.run(a);
        finish.run(a);
      },
      scratch);
}

std::unique_ptr<Kernel> make_convolution_grad_input(const Site& site) {
  const Tensors t = *tensors_of(site);
  if (!supported(t, group_of(site))) return nullptr;
  const Direction d = direction_of(site.attributes(), t);
  const auto pd = d.backward_data();
  return std::make_unique<PrimitiveKernel>(
      site, Primitive(dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
                      {reads(0, DNNL_ARG_DIFF_DST, d.y), reads(1, DNNL_ARG_WEIGHTS, d.weights),
                       writes(0, DNNL_ARG_DIFF_SRC, d.x)}));
}

namespace {

// oneDNN writes the code of its barrier, 256 KiB mapped for it, when threads first wait for each
// other in the gradient of some weights: in the first step. This small gradient over a batch of two
// makes it do so while kernels are made.
void make_barrier() {
  Direction d;
  d.geometry = {{1, 1}, {0, 0}, {0, 0}, {0, 0}, 1};
  const auto last = dnnl::memory::format_tag::nhwc;
  d.x = Desc({2, 16, 32, 32}, dnnl::memory::data_type::f32, last);
  d.y = Desc({2, 96, 32, 32}, dnnl::memory::data_type::f32, last);
  d.weights = Desc({96, 16, 1, 1}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
  const auto pd = d.backward_weights();
  const auto memory = [](const Desc& desc) { return dnnl::memory(desc, onednn_engine()); };
  dnnl::stream stream(onednn_engine());
  dnnl::convolution_backward_weights(pd).execute(
      stream, {{DNNL_ARG_SRC, memory(pd.src_desc())},
               {DNNL_ARG_DIFF_DST, memory(pd.diff_dst_desc())},
               {DNNL_ARG_DIFF_WEIGHTS, memory(pd.diff_weights_desc())},
               {DNNL_ARG_SCRATCHPAD, memory(pd.scratchpad_desc())}});
}

}  // namespace

std::unique_ptr<Kernel> make_convolution_grad_weight(const Site& site) {
  const Tensors t = *tensors_of(site);
  if (!supported(t, group_of(site))) return nullptr;
  if (site.threads > 1) {
    static std::once_flag once;
    std::call_once(once, make_barrier);
  }
  const Direction d = direction_of(site.attributes(), t);
  const auto pd = d.backward_weights();
  std::vector<Primitive::Binding> bindings = {reads(0, DNNL_ARG_SRC, d.x),
                                              reads(1, DNNL_ARG_DIFF_DST, d.y),
                                              writes(0, DNNL_ARG_DIFF_WEIGHTS, d.weights)};
  if (t.bias) bindings.push_back(writes(1, DNNL_ARG_DIFF_BIAS, d.bias));
  return std::make_unique<PrimitiveKernel>(
      site, Primitive(dnnl::convolution_backward_weights(pd), pd.scratchpad_desc(), bindings));
}

namespace {

// The data gradient with its tensors in the blocks that oneDNN likes best. For row-major ones it
// has a product of matrices alone, which allocates up to 7 MB a call behind everybody's back; here
// the copies in blocks lie in scratch, where the plan sees them.
class DataGradientInBlocks {
 public:
  explicit DataGradientInBlocks(const Direction& plain) {
    const auto any = [](const Desc& desc) {
      return Desc(desc.dims(), desc.data_type(), dnnl::memory::format_tag::any);
    };
    Direction free = plain;
    free.x = any(plain.x);
    free.y = any(plain.y);
    free.weights = any(plain.weights);
    const auto pd = free.backward_data();
    bring_in(plain.y, pd.diff_dst_desc());
    bring_in(plain.weights, pd.weights_desc());
    bring_in(plain.x, pd.diff_src_desc());
    primitives_.emplace_back(dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
                             std::vector{reads(0, DNNL_ARG_DIFF_DST, pd.diff_dst_desc()),
                                         reads(1, DNNL_ARG_WEIGHTS, pd.weights_desc()),
                                         writes(0, DNNL_ARG_DIFF_SRC, pd.diff_src_desc())});
    for (const Primitive& primitive : primitives_) inner_ = std::max(inner_, primitive.scratch());
  }

  Bytes scratch() const { return copies_ + inner_; }

  void run(const Arguments& a) {
    std::byte* const inner = a.scratch + copies_.value;
    const std::array<std::byte*, 3> in_blocks{a.scratch, a.scratch + begins_[1].value,
                                              a.scratch + begins_[2].value};
    const auto call = [inner](Primitive& primitive, std::initializer_list<const std::byte*> from,
                              std::byte* to) {
      primitive.run({{from.begin(), from.size()}, {&to, 1}, inner});
    };
    call(primitives_[0], {a.inputs[0]}, in_blocks[0]);
    call(primitives_[1], {a.inputs[1]}, in_blocks[1]);
    call(primitives_[3], {in_blocks[0], in_blocks[1]}, in_blocks[2]);
    call(primitives_[2], {in_blocks[2]}, a.outputs[0]);
  }

 private:
  // Copies from one to the other, with room for the blocked one; the result, the third of them,
  // goes the other way.
  void bring_in(const Desc& plain, const Desc& blocked) {
    const bool result = primitives_.size() == 2;
    const Desc& from = result ? blocked : plain;
    const Desc& to = result ? plain : blocked;
    const dnnl::reorder::primitive_desc pd(onednn_engine(), from, onednn_engine(), to,
                                           user_scratchpad());
    primitives_.emplace_back(
        dnnl::reorder(pd), pd.scratchpad_desc(),
        std::vector{reads(0, DNNL_ARG_FROM, from), writes(0, DNNL_ARG_TO, to)});
    begins_.push_back(copies_);
    copies_ += Bytes(round_up(static_cast<std::int64_t>(blocked.get_size()), kAlignment));
  }

  // y, weights and x between their layouts, then the gradient itself
  std::vector<Primitive> primitives_;
  std::vector<Bytes> begins_;  // of the copies in scratch
  Bytes copies_;
  Bytes inner_;  // scratch of one primitive at a time
};

PLIMSOLL_VECTORIZED void add_to_range(float* y, float value, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] += value;
}

}  // namespace

// The data gradient of the convolution that goes the other way, and the bias on top.
std::unique_ptr<Kernel> make_convolution_transpose(const Site& site) {
  const Tensors t{site.out(0), site.in(1), site.in(0), false};
  if (!supported(t, group_of(site)) || !is_f32(t.x) || !all_row_major(site)) return nullptr;
  DataGradientInBlocks primitive(direction_of(site.attributes(), t));
  const Bytes scratch = primitive.scratch();
  const std::int64_t channels = site.out().shape[1];
  const std::int64_t planes = site.out().shape[0] * channels;
  const std::int64_t plane = site.out().shape.elements(2, site.out().shape.rank());
  const bool bias = site.has(2);
  return make_kernel(
      site,
      [=](const Arguments& a) mutable {
        primitive.run(a);
        if (!bias) return;
        parallel_each(planes, [&](std::int64_t p) {
          add_to_range(output<float>(a) + p * plane, input<float>(a, 2)[p % channels], plane);
        });
      },
      scratch);
}

namespace {

// Spatial axes, channels, filters: with it the product of matrices serves groups whose channels
// fill no block, where the weights as they are would leave only oneDNN's reference.
ir::Layout product_weights(const Site& site, Tensors t) {
  ir::Layout out;
  out.rank = static_cast<std::uint8_t>(t.w.shape.rank());
  for (std::uint8_t axis = 2; axis < out.rank; ++axis) out.order[axis - 2] = axis;
  out.order[out.rank - 2] = 1;
  out.order[out.rank - 1] = 0;
  t.w.layout = out;
  const Direction d = direction_of(site.attributes(), t);
  const std::string_view serves = site.node.op == "conv" ? d.forward().impl_info_str()
                                  : site.node.op == "conv_grad_input"
                                      ? d.backward_data().impl_info_str()
                                      : d.backward_weights().impl_info_str();
  return serves.starts_with("ref") ? ir::Layout{} : out;
}

}  // namespace

ir::Layout convolution_weights_layout(const ir::Graph& graph, const ir::Node& node,
                                      const CpuKernelOptions& options) {
  const Site site{graph, node, options.threads > 0 ? options.threads : omp_get_num_procs()};
  use_threads(site.threads);
  const auto t = tensors_of(site);
  if (!t || !supported(*t, group_of(site))) return {};
  try {
    Direction d = direction_of(site.attributes(), *t);
    d.weights = Desc(d.weights.dims(), d.weights.data_type(), dnnl::memory::format_tag::any);
    const Desc chosen = site.node.op == "conv" ? d.forward().weights_desc()
                        : site.node.op == "conv_grad_input"
                            ? d.backward_data().weights_desc()
                            : d.backward_weights().diff_weights_desc();
    if (d.geometry.group == 1) return layout_of(chosen).value_or(ir::Layout{});
    if (t->w.shape[0] != d.geometry.group) {
      const auto whole = ungrouped(chosen);
      return whole ? layout_of(*whole).value_or(ir::Layout{}) : product_weights(site, *t);
    }
    // Depthwise: [g, 1, 1, h, w] with a block of g is our [g, 1, h, w] with a block of axis 0.
    if (t->w.shape[1] != 1) return {};
    const auto& blocking = chosen.data.format_desc.blocking;
    if (chosen.data.format_kind != dnnl_blocked || blocking.inner_nblks != 1 ||
        blocking.inner_idxs[0] != 0)
      return {};
    ir::Layout out;
    out.rank = static_cast<std::uint8_t>(t->w.shape.rank());
    for (std::uint8_t axis = 0; axis < out.rank; ++axis) out.order[axis] = axis;
    out.block_count = 1;
    out.blocks[0] = {0, static_cast<std::uint16_t>(blocking.inner_blks[0])};
    return out;
  } catch (const dnnl::error&) {
    return {};
  }
}

}  // namespace plimsoll::kernels
