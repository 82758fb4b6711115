// Convolution and its two gradients: depthwise ones and small groups by our own loops (depthwise.h,
// grouped.h), all others through oneDNN.
#include <limits>
#include <mutex>

#include "plimsoll/kernels/cpu/channels.h"
#include "plimsoll/kernels/cpu/convolution_descriptor.h"
#include "plimsoll/kernels/cpu/depthwise.h"
#include "plimsoll/kernels/cpu/grouped.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

using Desc = dnnl::memory::desc;

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
      parallel_rows(channels.batch * channels.plane, width, [&](std::int64_t i) {
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

std::unique_ptr<Kernel> make_convolution(const Site& site) {
  constexpr auto kDirection = ConvolutionDirection::kForward;
  if (is_depthwise(site, kDirection)) return make_depthwise(site, kDirection);
  if (is_grouped(site, kDirection)) return make_grouped(site, kDirection);
  const ConvolutionTensors t = convolution_tensors(site, kDirection);
  if (!can_describe(t, site.attributes())) return nullptr;
  ConvolutionDescriptor d = describe_convolution(site.attributes(), t);
  auto pd = d.forward();
  const Finish finish(site.out(), t.bias, d.relu);
  // Not is_gemm(): the ReLU of "x64:gemm:jit" makes -0 of what is negative, this one 0, and the
  // bits of results are not to change.
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
  constexpr auto kDirection = ConvolutionDirection::kInputGradient;
  if (is_depthwise(site, kDirection)) return make_depthwise(site, kDirection);
  if (is_grouped(site, kDirection)) return make_grouped(site, kDirection);
  const ConvolutionTensors t = convolution_tensors(site, kDirection);
  if (!can_describe(t, site.attributes())) return nullptr;
  const ConvolutionDescriptor d = describe_convolution(site.attributes(), t);
  const auto pd = d.backward_data();
  return std::make_unique<PrimitiveKernel>(
      site, Primitive(dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
                      {reads(0, DNNL_ARG_DIFF_DST, d.y), reads(1, DNNL_ARG_WEIGHTS, d.weights),
                       writes(0, DNNL_ARG_DIFF_SRC, d.x)}));
}

// oneDNN writes the code of its barrier, 256 KiB mapped for it, when threads first wait for each
// other in the gradient of some weights: in the first step. This small gradient over a batch of two
// makes it do so while kernels are made.
void make_barrier() {
  ConvolutionDescriptor d;
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

std::unique_ptr<Kernel> make_convolution_grad_weight(const Site& site) {
  constexpr auto kDirection = ConvolutionDirection::kWeightGradient;
  if (is_depthwise(site, kDirection)) return make_depthwise(site, kDirection);
  if (is_grouped(site, kDirection)) return make_grouped(site, kDirection);
  const ConvolutionTensors t = convolution_tensors(site, kDirection);
  if (!can_describe(t, site.attributes())) return nullptr;
  if (site.threads > 1) {
    static std::once_flag once;
    std::call_once(once, make_barrier);
  }
  const ConvolutionDescriptor d = describe_convolution(site.attributes(), t);
  const auto pd = d.backward_weights();
  std::vector<Primitive::Binding> bindings = {reads(0, DNNL_ARG_SRC, d.x),
                                              reads(1, DNNL_ARG_DIFF_DST, d.y),
                                              writes(0, DNNL_ARG_DIFF_WEIGHTS, d.weights)};
  if (t.bias) bindings.push_back(writes(1, DNNL_ARG_DIFF_BIAS, d.bias));
  return std::make_unique<PrimitiveKernel>(
      site, Primitive(dnnl::convolution_backward_weights(pd), pd.scratchpad_desc(), bindings));
}

}  // namespace

std::span<const TableEntry> convolution_kernels() {
  static constexpr TableEntry kRows[] = {
      {"conv", make_convolution},
      {"conv_grad_input", make_convolution_grad_input},
      {"conv_grad_weight", make_convolution_grad_weight},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
