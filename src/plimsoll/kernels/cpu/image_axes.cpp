#include "plimsoll/kernels/cpu/image_axes.h"

namespace plimsoll::kernels {

bool are_plain_images(const ConvolutionTensors& t) {
  const int rank = t.x.shape.rank();
  if (rank != 3 && rank != 4) return false;
  for (const ir::TensorType* type : {&t.x, &t.w, &t.y}) {
    if (!is_f32(*type) || type->shape.elements() == 0) return false;
  }
  return t.x.layout == ir::Layout::channels_last(rank) && t.y.layout == t.x.layout &&
         t.w.layout.is_row_major();
}

Images images_of(const Site& site, ConvolutionDirection direction) {
  const ConvolutionTensors t = convolution_tensors(site, direction);
  const ops::AttributeReader attributes = site.attributes();
  const int spatial = t.x.shape.rank() - 2;
  const auto count = static_cast<std::size_t>(spatial);
  const ir::Ints strides = attributes.integers("strides", ir::Ints(count, 1));
  const ir::Ints dilations = attributes.integers("dilations", ir::Ints(count, 1));
  const ir::Ints pads = attributes.integers("pads", ir::Ints(2 * count, 0));
  const auto axis = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    return ImageAxis{t.x.shape[2 + i], t.y.shape[2 + i], t.w.shape[2 + i],
                     strides[at],      dilations[at],    pads[at]};
  };
  return {t.x.shape[0], t.x.shape[1], t.y.shape[1], spatial == 2 ? axis(0) : ImageAxis{},
          axis(spatial - 1)};
}

namespace {
ImageAxis turned_axis(const ImageAxis& axis) {
  return {axis.results,  axis.data,
          axis.taps,     1,
          axis.dilation, (axis.taps - 1) * axis.dilation - axis.before};
}
}  // namespace

Images turned(const Images& g) {
  return {g.batch, g.filters, g.channels, turned_axis(g.rows), turned_axis(g.columns)};
}

}  // namespace plimsoll::kernels
