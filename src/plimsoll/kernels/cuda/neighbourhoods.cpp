// Kernels that look at an element's neighbours (neighbourhoods.cu): pads by mode, local response
// normalisation, resizing.
#include "plimsoll/kernels/cuda/reduction.h"
#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

Made make_pad_by_mode(const Site& site) {
  const std::string mode = site.attributes().text("mode");
  if (mode == "constant" || !all_row_major(site) || ir::bits(site.out().dtype) < 8)
    return no_kernel();
  const ir::Ints pads = site.attributes().integers("pads");
  PadShape shape{};
  shape.rank = site.out().shape.rank();
  for (int axis = 0; axis < shape.rank; ++axis) {
    shape.x[axis] = site.in(0).shape[axis];
    shape.y[axis] = site.out().shape[axis];
    shape.before[axis] = pads[static_cast<std::size_t>(axis)];
  }
  const PadMode how = mode == "edge"   ? PadMode::kEdge
                      : mode == "wrap" ? PadMode::kWrap
                                       : PadMode::kReflect;
  return make_kernel(
      [=, width = width_of(site.out().dtype)](const Arguments& a, cudaStream_t stream) {
        pad_by_mode(how, shape, width, a.inputs[0], a.outputs[0], stream);
      });
}

// Row-major or channels last: the spatial axes are one.
std::optional<ChannelWindows> channel_windows(const Site& site) {
  const ir::TensorType& type = site.in(0);
  const int rank = type.shape.rank();
  const bool last = type.layout == ir::Layout::channels_last(rank) && rank > 2;
  if (!is_kernel_float(type.dtype) || (!type.layout.is_row_major() && !last)) return std::nullopt;
  for (int i = 0; i < site.inputs(); ++i) {
    if (site.in(i) != site.out()) return std::nullopt;
  }
  const std::int64_t size = site.attributes().integer("size");
  ChannelWindows out{};
  out.batch = type.shape[0];
  out.channels = type.shape[1];
  out.plane = type.shape.elements(2, rank);
  out.batch_step = out.channels * out.plane;
  out.channel_step = last ? 1 : out.plane;
  out.plane_step = last ? out.channels : 1;
  out.below = std::min((size - 1) / 2, out.channels);
  out.above = std::min(size / 2, out.channels);
  out.alpha_each = site.attributes().real("alpha") / static_cast<double>(size);
  out.beta = site.attributes().real("beta");
  out.k = site.attributes().real("k");
  return out;
}

Made make_lrn(const Site& site) {
  const auto windows = channel_windows(site);
  if (!windows) return no_kernel();
  return make_kernel(
      [shape = *windows, type = element_of(site.in(0).dtype)](const Arguments& a,
                                                              cudaStream_t stream) {
        normalise_channels(type, shape, a.inputs[0], a.outputs[0], stream);
      },
      {Bytes(0), false});
}

Made make_lrn_grad(const Site& site) {
  const auto windows = channel_windows(site);
  if (!windows) return no_kernel();
  return make_kernel(
      [shape = *windows, type = element_of(site.in(0).dtype)](const Arguments& a,
                                                              cudaStream_t stream) {
        normalise_channels_gradient(type, shape, a.inputs[0], a.inputs[1], a.outputs[0],
                                    scratch<float>(a), stream);
      },
      {Bytes(site.out().shape.elements() * 4), false});
}

ResizeShape resize_shape(const Site& site, const ir::Shape& from, const ir::Shape& to) {
  const ops::AttributeReader attributes = site.attributes();
  const std::string place = attributes.text("coordinates");
  const std::string rounding = attributes.text("rounding");
  ResizeShape out{};
  out.rank = from.rank();
  for (int axis = 0; axis < out.rank; ++axis) {
    out.from[axis] = from[axis];
    out.to[axis] = to[axis];
  }
  out.linear = attributes.text("mode") == "linear";
  out.place = place == "asymmetric"           ? ResizePlace::kAsymmetric
              : place == "align_corners"      ? ResizePlace::kAlignCorners
              : place == "pytorch_half_pixel" ? ResizePlace::kPytorchHalfPixel
                                              : ResizePlace::kHalfPixel;
  out.rounding = rounding == "floor"               ? ResizeRounding::kFloor
                 : rounding == "ceil"              ? ResizeRounding::kCeil
                 : rounding == "round_prefer_ceil" ? ResizeRounding::kPreferCeil
                                                   : ResizeRounding::kPreferFloor;
  return out;
}

template <bool is_gradient>
Made make_resize(const Site& site) {
  if (!is_kernel_float(site.in(0).dtype) || !all_row_major(site)) return no_kernel();
  const ir::Shape& small = is_gradient ? site.out().shape : site.in(0).shape;
  const ir::Shape& large = is_gradient ? site.in(0).shape : site.out().shape;
  return make_kernel(
      [shape = resize_shape(site, small, large), type = element_of(site.in(0).dtype)](
          const Arguments& a, cudaStream_t stream) {
        (is_gradient ? resize_gradient : resize)(type, shape, a.inputs[0], a.outputs[0], stream);
      });
}

}  // namespace

std::span<const TableEntry> neighbourhood_kernels() {
  static constexpr TableEntry kRows[] = {
      {"lrn", make_lrn},
      {"lrn_grad", make_lrn_grad},
      {"pad", make_pad_by_mode},
      {"resize", make_resize<false>},
      {"resize_grad", make_resize<true>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda
