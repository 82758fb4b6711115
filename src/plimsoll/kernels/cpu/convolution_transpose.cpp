// Transposed convolution: the data gradient of the convolution that goes the other way, and the
// bias on top.
#include <array>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/convolution_descriptor.h"
#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {
namespace {

// The data gradient with its tensors in the blocks that oneDNN likes best. For row-major ones it
// has a product of matrices alone, which allocates up to 7 MB a call behind everybody's back; here
// the copies in blocks lie in scratch, where the plan sees them.
class DataGradientInBlocks {
 public:
  explicit DataGradientInBlocks(const ConvolutionDescriptor& plain) {
    const auto any = [](const dnnl::memory::desc& desc) {
      return dnnl::memory::desc(desc.dims(), desc.data_type(), dnnl::memory::format_tag::any);
    };
    ConvolutionDescriptor free = plain;
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
  // Copies from one to the other, with space for the blocked one; the result, the third of them,
  // goes the other way.
  void bring_in(const dnnl::memory::desc& plain, const dnnl::memory::desc& blocked) {
    const bool result = primitives_.size() == 2;
    const dnnl::memory::desc& from = result ? blocked : plain;
    const dnnl::memory::desc& to = result ? plain : blocked;
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

std::unique_ptr<Kernel> make_convolution_transpose(const Site& site) {
  const ConvolutionTensors t{site.out(0), site.in(1), site.in(0), false};
  if (!can_describe(t, site.attributes()) || !is_f32(t.x) || !all_row_major(site)) return nullptr;
  DataGradientInBlocks primitive(describe_convolution(site.attributes(), t));
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

}  // namespace

std::span<const TableEntry> convolution_transpose_kernels() {
  static constexpr TableEntry kRows[] = {{"conv_transpose", make_convolution_transpose}};
  return kRows;
}

}  // namespace plimsoll::kernels
