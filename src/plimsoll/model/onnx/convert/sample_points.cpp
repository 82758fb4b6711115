#include "plimsoll/model/onnx/convert/sample_points.h"

#include "plimsoll/model/onnx/convert/building_blocks.h"

namespace plimsoll::model::onnx {
namespace {

Var clamp(Var x, std::int64_t extent) {
  return x.builder().call1("clip", {x}, {{"min", 0.0}, {"max", static_cast<double>(extent - 1)}});
}

struct Tap {
  Var index;
  Var weight;
};

// Every combination of one tap per axis: the pixel's number in the image, and the product of the
// weights.
std::vector<Tap> combinations(const std::vector<AxisTaps>& axes,
                              const std::vector<std::int64_t>& extents) {
  std::vector<Tap> out{{}};
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    std::vector<Tap> longer;
    for (const Tap& tap : out) {
      for (std::size_t t = 0; t < axes[axis].index.size(); ++t) {
        const Var index = axes[axis].index[t];
        const Var weight = axes[axis].weight[t];
        longer.push_back(tap.index ? Tap{tap.index * static_cast<double>(extents[axis]) + index,
                                         tap.weight * weight}
                                   : Tap{index, weight});
      }
    }
    out = std::move(longer);
  }
  return out;
}

}  // namespace

Var inside(Var place, std::int64_t extent) {
  Builder& builder = place.builder();
  const Var not_before = builder.call1("greater_equal", {place, ops::number(place, 0)});
  const Var not_behind =
      builder.call1("less_equal", {place, ops::number(place, static_cast<double>(extent - 1))});
  return cast_to(builder.call1("logical_and", {not_before, not_behind}), place.dtype());
}

AxisTaps taps_at(const std::vector<Var>& places, const std::vector<Var>& weights,
                 std::int64_t extent, Outside outside) {
  AxisTaps out;
  for (std::size_t t = 0; t < places.size(); ++t) {
    out.index.push_back(cast_to(clamp(places[t], extent), ir::DType::kI64));
    out.weight.push_back(outside == Outside::kEdge ? weights[t]
                                                   : weights[t] * inside(places[t], extent));
  }
  return out;
}

AxisTaps linear_taps(Var coordinate, std::int64_t extent, Outside outside) {
  const Var low = unary_call("floor", coordinate);
  const Var part = coordinate - low;
  return taps_at({low, low + 1.0}, {1.0 - part, part}, extent, outside);
}

Var pixel_rows(Var image) {
  if (image.builder().error()) return image;
  ir::Ints perm = range(0, image.rank());
  perm.erase(perm.begin() + 1);
  perm.push_back(1);
  const std::int64_t channels = image.dim(1);
  const std::int64_t pixels = image.dim(0) * image.shape().elements(2, image.rank());
  return reshape_to(transpose_by(image, perm), {pixels, channels});
}

Var sample(Var rows, Var first, const std::vector<AxisTaps>& axes,
           const std::vector<std::int64_t>& extents, Combine combine) {
  Builder& builder = rows.builder();
  Var out;
  for (const Tap& tap : combinations(axes, extents)) {
    const Var value =
        builder.call1("gather", {rows, first + tap.index}, {{"axis", std::int64_t{0}}});
    if (builder.error()) return rows;
    ir::Ints shape = dims_of(tap.weight.shape());
    shape.push_back(1);
    const Var counted = value * reshape_to(tap.weight, shape);
    if (!out) {
      out = counted;
    } else {
      out = combine == Combine::kSum ? out + counted : builder.call1("maximum", {out, counted});
    }
  }
  return out;
}

}  // namespace plimsoll::model::onnx
