// conv, conv_grad_input, conv_grad_weight and conv_transpose: cuDNN, or a direct kernel where it
// has no engine (convolution_direct.cu). Bias and ReLU are one generated pass over the result, the
// bias gradient is a channel sum.
//
// cuDNN wants weights that lie like the data: KRSC where the data are channels last. Weights that
// do not are copied in scratch; the layout pass can lay them so from the start. And it wants the
// same padding in front and behind (with others its weight gradient was wrong on the card): data
// padded otherwise are padded in scratch.
#include "plimsoll/kernels/cuda/cudnn_convolution.h"
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/kernels/cuda/volume_steps.h"
#include "plimsoll/ops/elementwise/fused_relu.h"
#include "plimsoll/ops/products/conv_geometry.h"

namespace plimsoll::kernels::cuda {
namespace {

// Bytes on the device: read, or written.
struct Addresses {
  const std::byte* x;
  const std::byte* w;
  const std::byte* y;
};

// The layout of weights beside data of this layout.
ir::TensorType weight_like(const ir::TensorType& data, const ir::TensorType& w) {
  ir::TensorType out = w;
  const bool last = data.layout == ir::Layout::channels_last(data.shape.rank());
  out.layout = last ? ir::Layout::channels_last(w.shape.rank()) : ir::Layout();
  return out;
}

// Whether two layouts of one shape are the same memory: extents of 1 do not matter.
bool same_memory(const ir::TensorType& a, const ir::TensorType& b) {
  const Strides left = strides_in_memory(a);
  const Strides right = strides_in_memory(b);
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (a.shape[axis] > 1 && left[at] != right[at]) return false;
  }
  return true;
}

// Extents and steps with at least two spatial axes: one axis becomes the width of a height of 1.
void describe(const ir::TensorType& type, std::vector<std::int64_t>& extents,
              std::vector<std::int64_t>& steps) {
  const Strides own = strides_in_memory(type);
  const int rank = type.shape.rank();
  for (int axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (axis == 2 && rank == 3) {
      extents.push_back(1);
      steps.push_back(own[at] * type.shape[axis]);
    }
    extents.push_back(type.shape[axis]);
    steps.push_back(own[at]);
  }
}

ops::ConvGeometry geometry_of(const Site& site, const ir::Shape& x, const ir::Shape& w) {
  const auto geometry = ops::conv_geometry(x, w, site.attributes());
  PLIMSOLL_CHECK(geometry.has_value(), "{} was not verified", site.node.op);
  return *geometry;
}

ConvolutionShape convolution_shape(ConvolutionWay way, const ops::Window& window,
                                   const ir::TensorType& x, const ir::TensorType& w,
                                   const ir::TensorType& y) {
  ConvolutionShape out;
  out.way = way;
  out.dtype = x.dtype;
  describe(x, out.x, out.x_steps);
  describe(w, out.w, out.w_steps);
  describe(y, out.y, out.y_steps);
  for (std::size_t axis = x.shape.rank() == 5 ? 0 : 1; axis < 3; ++axis) {
    out.strides.push_back(window.strides[axis]);
    out.dilations.push_back(window.dilations[axis]);
    out.begins.push_back(window.begins[axis]);
    out.ends.push_back(window.ends[axis]);
  }
  return out;
}

DirectConvolution direct_shape(const Site& site, const ir::TensorType& x, const ir::TensorType& w,
                               const ir::TensorType& y) {
  const ops::ConvGeometry geometry = geometry_of(site, x.shape, w.shape);
  DirectConvolution out{};
  out.batch = geometry.batch;
  out.group = geometry.group;
  out.inputs = geometry.inputs;
  out.outputs = geometry.outputs;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    out.data[axis] = geometry.data[axis];
    out.results[axis] = geometry.results[axis];
    out.kernel[axis] = geometry.window.kernel[axis];
    out.strides[axis] = geometry.window.strides[axis];
    out.dilations[axis] = geometry.window.dilations[axis];
    out.begins[axis] = geometry.window.begins[axis];
  }
  set_volume_steps(x, out.x_steps);
  set_volume_steps(y, out.y_steps);
  set_volume_steps(w, out.w_steps);
  return out;
}

Result<PointwiseKernel> make_reorder(const ir::TensorType& from, const ir::TensorType& to) {
  Pointwise copy;
  copy.space = to;
  copy.inputs = {{from.dtype, strides_in_memory(from)}};
  copy.outputs = {{to.dtype, strides_in_memory(to)}};
  copy.results = {"a"};
  return PointwiseKernel::make(copy);
}

// x with the window's padding as data of its own.
ir::TensorType with_padding(const ir::TensorType& x, const ops::Window& window) {
  ir::TensorType out = x;
  for (int axis = 2; axis < x.shape.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis + ops::kVolumeAxes - x.shape.rank());
    out.shape[axis] += window.begins[at] + window.ends[at];
  }
  return out;
}

// Data into the middle of their padded form, or out of it.
Result<PointwiseKernel> make_padding(const ir::TensorType& x, const ir::TensorType& padded,
                                     const ops::Window& window, bool out_of) {
  PointwiseTensor inside{padded.dtype, strides_in_memory(padded)};
  for (int axis = 2; axis < x.shape.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis + ops::kVolumeAxes - x.shape.rank());
    inside.offset += window.begins[at] * inside.strides[static_cast<std::size_t>(axis)];
  }
  const PointwiseTensor plain{x.dtype, strides_in_memory(x)};
  Pointwise copy;
  copy.space = x;
  copy.inputs = {out_of ? inside : plain};
  copy.outputs = {out_of ? plain : inside};
  copy.results = {"a"};
  return PointwiseKernel::make(copy);
}

// One of the three ways, ready to run.
class Convolution {
 public:
  static Result<Convolution> make(const Site& site, ConvolutionWay way, const ir::TensorType& x,
                                  const ir::TensorType& w, const ir::TensorType& y) {
    Convolution out;
    out.way_ = way;
    out.type_ = element_of(x.dtype);
    const ir::TensorType wanted = weight_like(x, w);
    const bool is_empty =
        x.shape.elements() == 0 || w.shape.elements() == 0 || y.shape.elements() == 0;
    ops::Window window = geometry_of(site, x.shape, w.shape).window;
    ir::TensorType data = x;
    const bool pads = window.begins != window.ends;
    if (pads) {
      data = with_padding(x, window);
      PLIMSOLL_TRY(out.padding_, make_padding(x, data, window, way == ConvolutionWay::kData));
      window.begins = window.ends = {0, 0, 0};
    }
    if (x.layout == y.layout && !is_empty) {
      PLIMSOLL_TRY(
          out.planned_,
          make_cudnn_convolution(convolution_shape(way, window, data, wanted, y), site.options));
    }
    if (out.planned_ == nullptr) {
      out.direct_ = direct_shape(site, x, w, y);
      return out;
    }
    out.workspace_ = out.scratch_.add(out.planned_->workspace().value);
    if (pads) {
      out.padded_bytes_ = ir::bytes_of(data).value;
      out.padded_ = out.scratch_.add(out.padded_bytes_);
    }
    if (same_memory(w, wanted)) return out;
    const bool writes = way == ConvolutionWay::kWeight;
    PLIMSOLL_TRY(out.reorder_, writes ? make_reorder(wanted, w) : make_reorder(w, wanted));
    out.has_reorder_ = true;
    out.weights_ = out.scratch_.add(ir::bytes_of(wanted).value);
    return out;
  }

  Bytes scratch() const { return scratch_.size(); }

  void run(cudaStream_t stream, const Addresses& at, std::byte* scratch) const {
    if (planned_ == nullptr) return run_directly(stream, at);
    if (padded_bytes_ > 0) return run_padded(stream, at, scratch);
    run_planned(stream, at, scratch);
  }

 private:
  void run_padded(cudaStream_t stream, const Addresses& at, std::byte* scratch) const {
    std::byte* data = scratch + padded_;
    const std::byte* from = data;
    std::byte* written = const_cast<std::byte*>(at.x);
    const bool writes = way_ == ConvolutionWay::kData;
    if (!writes) {
      cudaMemsetAsync(data, 0, static_cast<std::size_t>(padded_bytes_), stream);
      padding_.launch(stream, {&at.x, 1}, {&data, 1});
    }
    run_planned(stream, {data, at.w, at.y}, scratch);
    if (writes) padding_.launch(stream, {&from, 1}, {&written, 1});
  }

  void run_planned(cudaStream_t stream, const Addresses& at, std::byte* scratch) const {
    const std::byte* own = has_reorder_ ? scratch + weights_ : at.w;
    std::byte* copy = scratch + weights_;
    std::byte* written = const_cast<std::byte*>(at.w);
    const bool writes = way_ == ConvolutionWay::kWeight;
    if (has_reorder_ && !writes) reorder_.launch(stream, {&at.w, 1}, {&copy, 1});
    planned_->run(stream, at.x, own, at.y, scratch + workspace_);
    if (has_reorder_ && writes) reorder_.launch(stream, {&own, 1}, {&written, 1});
  }

  void run_directly(cudaStream_t stream, const Addresses& at) const {
    switch (way_) {
      case ConvolutionWay::kForward:
        return direct_convolution(type_, direct_, at.x, at.w, const_cast<std::byte*>(at.y), stream);
      case ConvolutionWay::kData:
        return direct_data_gradient(type_, direct_, at.y, at.w, const_cast<std::byte*>(at.x),
                                    stream);
      case ConvolutionWay::kWeight:
        return direct_weight_gradient(type_, direct_, at.x, at.y, const_cast<std::byte*>(at.w),
                                      stream);
    }
  }

  ConvolutionWay way_ = ConvolutionWay::kForward;
  Element type_ = Element::kF32;
  std::shared_ptr<const CudnnConvolution> planned_;
  DirectConvolution direct_{};
  PointwiseKernel reorder_;
  PointwiseKernel padding_;
  bool has_reorder_ = false;
  ScratchLayout scratch_;
  std::int64_t workspace_ = 0;
  std::int64_t weights_ = 0;
  std::int64_t padded_ = 0;
  std::int64_t padded_bytes_ = 0;  // 0: the data are used as they are
};

bool takes_convolution(const Site& site) {
  const ir::DType dtype = site.in(0).dtype;
  return is_kernel_float(dtype) && all_unblocked(site) &&
         site.every_type([&](const ir::TensorType& type) { return type.dtype == dtype; });
}

// y + bias, or relu of it, over y itself.
Result<PointwiseKernel> make_epilogue(const ir::TensorType& y, bool biased, bool relu) {
  Pointwise pointwise;
  pointwise.space = y;
  pointwise.inputs = {{y.dtype, strides_in_memory(y)}};
  if (biased) pointwise.inputs.push_back({y.dtype, Strides{0, 1}});
  pointwise.outputs = {{y.dtype, strides_in_memory(y)}};
  const char* sum = biased ? "a + b" : "a";
  pointwise.results = {relu ? fmt::format("no_less_than_0({})", sum) : std::string(sum)};
  return PointwiseKernel::make(pointwise);
}

struct Epilogue {
  bool needed = false;
  bool biased = false;
  PointwiseKernel kernel;

  static Result<Epilogue> make(const Site& site) {
    Epilogue out;
    out.biased = site.has(2);
    const bool relu = ops::has_relu(site.attributes());
    out.needed = out.biased || relu;
    if (out.needed) {
      PLIMSOLL_TRY(out.kernel, make_epilogue(site.out(), out.biased, relu));
    }
    return out;
  }
  void run(const Arguments& a, cudaStream_t stream) const {
    if (!needed) return;
    const std::array<const std::byte*, 2> inputs{a.outputs[0], biased ? a.inputs[2] : nullptr};
    kernel.launch(stream, {inputs.data(), biased ? std::size_t{2} : std::size_t{1}},
                  a.outputs.first(1));
  }
};

Made make_conv(const Site& site) {
  if (!takes_convolution(site)) return no_kernel();
  PLIMSOLL_TRY(Convolution convolution, Convolution::make(site, ConvolutionWay::kForward,
                                                          site.in(0), site.in(1), site.out()));
  PLIMSOLL_TRY(Epilogue epilogue, Epilogue::make(site));
  const Bytes scratch = convolution.scratch();
  return make_kernel(
      [convolution = std::move(convolution), epilogue = std::move(epilogue)](const Arguments& a,
                                                                             cudaStream_t stream) {
        convolution.run(stream, {a.inputs[0], a.inputs[1], a.outputs[0]}, a.scratch);
        epilogue.run(a, stream);
      },
      {scratch});
}

// conv_grad_input(dy, w) -> dx; conv_transpose(x, w, bias?) -> y is the same with other names.
Made make_conv_grad_input(const Site& site) {
  if (!takes_convolution(site)) return no_kernel();
  PLIMSOLL_TRY(Convolution convolution,
               Convolution::make(site, ConvolutionWay::kData, site.out(), site.in(1), site.in(0)));
  PLIMSOLL_TRY(Epilogue epilogue, Epilogue::make(site));
  const Bytes scratch = convolution.scratch();
  return make_kernel(
      [convolution = std::move(convolution), epilogue = std::move(epilogue)](const Arguments& a,
                                                                             cudaStream_t stream) {
        convolution.run(stream, {a.outputs[0], a.inputs[1], a.inputs[0]}, a.scratch);
        epilogue.run(a, stream);
      },
      {scratch});
}

// conv_grad_weight(x, dy) -> dw(, db)
Made make_conv_grad_weight(const Site& site) {
  if (!takes_convolution(site)) return no_kernel();
  PLIMSOLL_TRY(Convolution convolution, Convolution::make(site, ConvolutionWay::kWeight, site.in(0),
                                                          site.out(), site.in(1)));
  const bool biased = site.outputs() > 1;
  const std::optional<ColumnShape> columns = channel_columns(site.in(1));
  std::vector<int> axes{0};
  for (int axis = 2; axis < site.in(1).shape.rank(); ++axis) axes.push_back(axis);
  const ReducePlan sums = make_reduce_plan(site.in(1), axes);
  const Bytes summing = columns ? scratch_of(*columns) : scratch_of(sums);
  const Bytes scratch = std::max(convolution.scratch(), biased ? summing : Bytes(0));
  return make_kernel(
      [convolution = std::move(convolution), biased, columns, sums,
       type = element_of(site.in(0).dtype)](const Arguments& a, cudaStream_t stream) {
        convolution.run(stream, {a.inputs[0], a.outputs[0], a.inputs[1]}, a.scratch);
        if (biased && columns) {
          column_sums(type, *columns, a.inputs[1], a.outputs[1], a.scratch, stream);
        } else if (biased) {
          fold(Fold::kSum, type, sums, a.inputs[1], a.outputs[1], 1, 1, a.scratch, stream);
        }
      },
      {scratch});
}

}  // namespace

std::span<const TableEntry> convolution_kernels() {
  static constexpr TableEntry kRows[] = {
      {"conv", make_conv},
      {"conv_grad_input", make_conv_grad_input},
      {"conv_grad_weight", make_conv_grad_weight},
      {"conv_transpose", make_conv_grad_input},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda
