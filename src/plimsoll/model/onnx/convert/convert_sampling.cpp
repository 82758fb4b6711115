// Operators that read an image at computed places: GridSample, AffineGrid, RoiAlign, DeformConv.
#include <algorithm>
#include <cmath>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/convert/sample_points.h"
#include "plimsoll/model/onnx/convert/window_attributes.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

struct GridRules {
  enum class Mode { kNearest, kLinear, kCubic } mode = Mode::kLinear;
  enum class Padding { kZeros, kBorder, kReflection } padding = Padding::kZeros;
  bool align_corners = false;

  Outside outside() const {
    return padding == Padding::kZeros ? Outside::kNothing : Outside::kEdge;
  }
};

Result<GridRules> grid_rules(OperatorCall& call) {
  GridRules out;
  const std::string mode = call.text("mode", "linear");
  if (mode == "nearest") {
    out.mode = GridRules::Mode::kNearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    out.mode = GridRules::Mode::kCubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return bad_input("mode '{}' is not known", mode);
  }
  const std::string padding = call.text("padding_mode", "zeros");
  if (padding == "border") {
    out.padding = GridRules::Padding::kBorder;
  } else if (padding == "reflection") {
    out.padding = GridRules::Padding::kReflection;
  } else if (padding != "zeros") {
    return bad_input("padding_mode '{}' is not known", padding);
  }
  out.align_corners = call.integer("align_corners", 0) != 0;
  return out;
}

// Mirrored at both ends until it lies inside. The mirrors stand on the outermost pixels' centres or
// edges.
Var reflected(Var place, std::int64_t extent, bool align_corners) {
  const double low = align_corners ? 0 : -0.5;
  const double span = align_corners ? static_cast<double>(extent - 1) : static_cast<double>(extent);
  if (span <= 0) return place * 0.0;
  const Var away = unary_call("abs", place - low);
  const Var round_trip = place.builder().call1("mod", {away, ops::number(away, 2 * span)},
                                               {{"fmod", std::int64_t{1}}});
  return span - unary_call("abs", round_trip - span) + low;
}

Var padded(Var place, std::int64_t extent, const GridRules& rules) {
  return rules.padding == GridRules::Padding::kReflection
             ? reflected(place, extent, rules.align_corners)
             : place;
}

// Weights of the four pixels around each coordinate, by its distance `t` from the second.
std::vector<Var> cubic_weights(Var t) {
  constexpr double kA = -0.75;
  const auto near = [](Var d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1.0; };
  const auto far = [](Var d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
}

AxisTaps grid_taps(Var coordinate, std::int64_t extent, const GridRules& rules) {
  if (rules.mode == GridRules::Mode::kCubic) {
    const Var low = unary_call("floor", coordinate);
    std::vector<Var> places;
    for (int i = -1; i <= 2; ++i)
      places.push_back(padded(low + static_cast<double>(i), extent, rules));
    return taps_at(places, cubic_weights(coordinate - low), extent, rules.outside());
  }
  // Beyond the edge nothing changes any more, so the coordinate itself can stop there.
  Var place = padded(coordinate, extent, rules);
  if (rules.outside() == Outside::kEdge) {
    place = place.builder().call1("clip", {place},
                                  {{"min", 0.0}, {"max", static_cast<double>(extent - 1)}});
  }
  if (rules.mode == GridRules::Mode::kLinear) return linear_taps(place, extent, rules.outside());
  const Var pixel = unary_call("round", place);
  return taps_at({pixel}, {pixel * 0.0 + 1.0}, extent, rules.outside());
}

// The number of each image's first pixel, one per image.
Var first_pixels(Builder& builder, std::int64_t images, std::int64_t pixels) {
  return builder.call1("iota", {},
                       {{"shape", ir::Ints{images, 1}},
                        {"dtype", std::string("int64")},
                        {"axis", std::int64_t{0}},
                        {"step", static_cast<double>(pixels)}});
}

Status grid_sample(OperatorCall& call) {
  PLIMSOLL_TRY(const GridRules rules, grid_rules(call));
  const int spatial = call.rank(0) - 2;
  if (!call.has(0) || !call.has(1) || spatial < 1 || spatial > 3 || call.rank(1) != spatial + 2 ||
      call.shape(1)[spatial + 1] != spatial || call.shape(0)[0] != call.shape(1)[0]) {
    return bad_input("an input {} and a grid {} do not fit each other",
                     ir::to_string(call.shape(0)), ir::to_string(call.shape(1)));
  }
  const Var x = call.in(0);
  const std::int64_t samples = call.shape(1).elements(1, spatial + 1);
  const Var grid = reshape_to(cast_to(call.in(1), x.dtype()), {x.dim(0), samples, spatial});
  std::vector<AxisTaps> taps;
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < spatial; ++axis) {
    const std::int64_t extent = x.dim(axis + 2);
    if (extent < 1) return bad_input("there are no pixels to read");
    // A grid names the innermost axis first, from -1 to 1.
    const Var place = select(grid, 2, spatial - 1 - axis) + 1.0;
    const Var at = rules.align_corners ? place * (static_cast<double>(extent - 1) / 2)
                                       : place * (static_cast<double>(extent) / 2) - 0.5;
    taps.push_back(grid_taps(at, extent, rules));
    extents.push_back(extent);
  }
  const Var first = first_pixels(call.builder(), x.dim(0), x.shape().elements(2, x.rank()));
  const Var y = sample(pixel_rows(x), first, taps, extents);
  if (call.builder().error()) return {};
  ir::Ints shape = dims_of(call.shape(1));
  shape.back() = x.dim(1);
  std::rotate(shape.begin() + 1, shape.end() - 1, shape.end());
  return call.done(reshape_to(transpose_by(y, {0, 2, 1}), shape));
}

// Coordinates of the pixels of an image, from -1 to 1, as rows (x, y, 1) or (x, y, z, 1).
Array base_grid(const ir::Ints& extents, bool align_corners, DType dtype) {
  std::int64_t pixels = 1;
  for (const std::int64_t extent : extents) pixels *= extent;
  std::vector<double> rows;
  rows.reserve(static_cast<std::size_t>(pixels) * (extents.size() + 1));
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    std::int64_t rest = pixel;
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      const auto at = static_cast<double>(rest % extents[axis]);
      const auto extent = static_cast<double>(extents[axis]);
      rest /= extents[axis];
      rows.push_back(align_corners ? (extent > 1 ? 2 * at / (extent - 1) - 1 : 0)
                                   : (2 * at + 1) / extent - 1);
    }
    rows.push_back(1);
  }
  return Array::of_reals({pixels, static_cast<std::int64_t>(extents.size()) + 1}, std::move(rows),
                         dtype);
}

Status affine_grid(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints size, call.known_integers(1, "size"));
  if (size.size() < 4 || size.size() > 5)
    return bad_input("size has {} numbers, expects 4 or 5", size.size());
  const ir::Ints extents(size.begin() + 2, size.end());
  const auto dims = static_cast<std::int64_t>(extents.size());
  std::int64_t pixels = 1;
  for (const std::int64_t extent : extents) {
    if (extent < 1 || extent > kMostFolded || (pixels *= extent) > kMostFolded / 8)
      return bad_input("its size is too large");
  }
  if (call.rank(0) != 3 || call.shape(0) != ir::Shape{size[0], dims, dims + 1}) {
    return bad_input("theta {} does not fit the size", ir::to_string(call.shape(0)));
  }
  const Var base =
      call.constant(base_grid(extents, call.integer("align_corners", 0) != 0, call.dtype(0)));
  const Var rows =
      call.builder().call1("matmul", {base, call.in(0)}, {{"trans_b", std::int64_t{1}}});
  ir::Ints shape = extents;
  shape.insert(shape.begin(), size[0]);
  shape.push_back(dims);
  return call.done(reshape_to(rows, shape));
}

struct RoiRules {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t sampling = 0;
  double scale = 1;
  bool half_pixel = true;
  Combine combine = Combine::kSum;
};

Result<RoiRules> roi_rules(OperatorCall& call) {
  RoiRules out{call.integer("output_height", 1), call.integer("output_width", 1),
               call.integer("sampling_ratio", 0), call.real("spatial_scale", 1)};
  // Before operator set 16 there was no choice.
  const std::string mode = call.text("coordinate_transformation_mode",
                                     call.version() < 16 ? "output_half_pixel" : "half_pixel");
  if (mode != "half_pixel" && mode != "output_half_pixel")
    return bad_input("coordinate_transformation_mode '{}' is not known", mode);
  out.half_pixel = mode == "half_pixel";
  const std::string pooling = call.text("mode", "avg");
  if (pooling != "avg" && pooling != "max") return bad_input("mode '{}' is not known", pooling);
  if (pooling == "max") out.combine = Combine::kLargest;
  constexpr std::int64_t kMost = 4096;
  if (out.height < 1 || out.width < 1 || out.height > kMost || out.width > kMost ||
      out.sampling < 0 || out.sampling > kMost) {
    return bad_input("an output of {} by {} with {} samples makes no sense", out.height, out.width,
                     out.sampling);
  }
  return out;
}

// Taps [rois, bins·samples] along one axis of regions that go from `begin` to `end` in pixels, both
// [rois, 1].
AxisTaps roi_taps(Var begin, Var end, std::int64_t bins, std::int64_t samples, std::int64_t extent,
                  const RoiRules& rules) {
  Builder& builder = begin.builder();
  Var size = end - begin;
  if (!rules.half_pixel) size = builder.call1("maximum", {size, ops::number(size, 1)});
  // Sample i of all lies at (i + 1/2) / (bins·samples) of the region.
  const auto count = static_cast<double>(bins * samples);
  const Var part = builder.call1("iota", {},
                                 {{"shape", ir::Ints{1, bins * samples}},
                                  {"dtype", std::string(ir::name(begin.dtype()))},
                                  {"axis", std::int64_t{1}},
                                  {"start", 0.5 / count},
                                  {"step", 1 / count}});
  const Var place = begin + size * part;
  const auto last = static_cast<double>(extent - 1);
  const Var at = builder.call1("clip", {place}, {{"min", 0.0}, {"max", last}});
  AxisTaps taps = linear_taps(at, extent, Outside::kEdge);
  // Up to one pixel outside still reads the edge.
  const Var counts = inside(place + 1.0, extent + 2);
  for (Var& weight : taps.weight) weight = weight * counts;
  return taps;
}

// Regions that take the same number of samples in each bin: [rois, C, height, width].
Var roi_align_alike(Var rows, Var rois, Var first, const ir::Shape& image, std::int64_t down,
                    std::int64_t across, const RoiRules& rules) {
  Builder& builder = rows.builder();
  const Var corner = rois * rules.scale - (rules.half_pixel ? 0.5 : 0.0);
  const auto edge = [&](int i) { return slice_axis(corner, 1, i, i + 1); };
  AxisTaps y = roi_taps(edge(1), edge(3), rules.height, down, image[2], rules);
  AxisTaps x = roi_taps(edge(0), edge(2), rules.width, across, image[3], rules);
  if (builder.error()) return rows;
  const std::int64_t count = rois.dim(0);
  const auto turned = [&](AxisTaps& taps, const ir::Ints& shape) {
    for (Var& v : taps.index) v = reshape_to(v, shape);
    for (Var& v : taps.weight) v = reshape_to(v, shape);
  };
  turned(y, {count, rules.height * down, 1});
  turned(x, {count, 1, rules.width * across});
  const Var all =
      sample(rows, reshape_to(first, {count, 1, 1}), {y, x}, {image[2], image[3]}, rules.combine);
  const Var bins = reshape_to(all, {count, rules.height, down, rules.width, across, image[1]});
  const Var out =
      reduce(rules.combine == Combine::kSum ? "reduce_mean" : "reduce_max", bins, {2, 4}, false);
  return transpose_by(out, {0, 3, 1, 2});
}

// With sampling_ratio 0 every region takes as many samples as it has pixels in a bin, so their
// shapes are known only where the regions are.
Result<Var> roi_align_adaptive(OperatorCall& call, Var rows, Var rois, Var first,
                               const RoiRules& rules) {
  PLIMSOLL_TRY(const Array* known, call.must_know(1, "rois (with sampling_ratio 0)"));
  constexpr std::int64_t kMostRegions = 1000;
  if (known->type.shape[0] > kMostRegions)
    return bad_input("more than {} regions with sampling_ratio 0", kMostRegions);
  std::vector<Var> out;
  for (std::int64_t i = 0; i < known->type.shape[0]; ++i) {
    const auto samples = [&](std::int64_t from, std::int64_t bins) {
      double size = (known->number(4 * i + from + 2) - known->number(4 * i + from)) * rules.scale;
      if (!rules.half_pixel) size = std::max(size, 1.0);
      return static_cast<std::int64_t>(
          std::clamp(std::ceil(size / static_cast<double>(bins)), 1.0, 4096.0));
    };
    out.push_back(roi_align_alike(rows, slice_axis(rois, 0, i, i + 1),
                                  slice_axis(first, 0, i, i + 1), call.shape(0),
                                  samples(1, rules.height), samples(0, rules.width), rules));
  }
  if (out.empty()) return bad_input("there are no regions");
  return concat_all(out, 0);
}

Status roi_align(OperatorCall& call) {
  PLIMSOLL_TRY(const RoiRules rules, roi_rules(call));
  if (!call.has(0) || !call.has(1) || !call.has(2) || call.rank(0) != 4 || call.rank(1) != 2 ||
      call.shape(1)[1] != 4 || call.shape(2) != ir::Shape{call.shape(1)[0]}) {
    return bad_input("an input {}, regions {} and batch indices {} do not fit each other",
                     ir::to_string(call.shape(0)), ir::to_string(call.shape(1)),
                     ir::to_string(call.shape(2)));
  }
  const ir::Shape image = call.shape(0);
  if (image[2] < 1 || image[3] < 1) return bad_input("there are no pixels to read");
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.known(2), image[0]));
  const Var rows = pixel_rows(call.in(0));
  const Var rois = cast_to(call.in(1), call.dtype(0));
  const Var first = cast_to(call.in(2), DType::kI64) * static_cast<double>(image[2] * image[3]);
  if (rules.sampling > 0)
    return call.done(
        roi_align_alike(rows, rois, first, image, rules.sampling, rules.sampling, rules));
  PLIMSOLL_TRY(const Var y, roi_align_adaptive(call, rows, rois, first, rules));
  return call.done(y);
}

// Where each tap of the kernel lies without its offset, along one axis: [1, taps, places].
Var kernel_places(OperatorCall& call, const WindowAttributes& window, const ir::Ints& out,
                  std::size_t axis) {
  std::vector<double> places;
  for (std::int64_t i = 0; i < window.kernel[0] * window.kernel[1]; ++i) {
    const std::int64_t tap = axis == 0 ? i / window.kernel[1] : i % window.kernel[1];
    for (std::int64_t j = 0; j < out[0] * out[1]; ++j) {
      const std::int64_t at = axis == 0 ? j / out[1] : j % out[1];
      places.push_back(static_cast<double>(at * window.strides[axis] - window.pads[axis] +
                                           tap * window.dilations[axis]));
    }
  }
  return call.constant(Array::of_reals({1, window.kernel[0] * window.kernel[1], out[0] * out[1]},
                                       std::move(places), call.dtype(0)));
}

struct DeformSizes {
  std::int64_t batch, channels, out_channels, groups, offset_groups, taps, places;
  ir::Ints out;
};

Result<DeformSizes> deform_sizes(OperatorCall& call, const WindowAttributes& window) {
  const ir::Shape& x = call.shape(0);
  const ir::Shape& w = call.shape(1);
  const ir::Shape& offset = call.shape(2);
  DeformSizes s{x[0],
                x[1],
                w[0],
                call.integer("group", 1),
                call.integer("offset_group", 1),
                w[2] * w[3],
                0,
                {offset[2], offset[3]}};
  s.places = s.out[0] * s.out[1];
  const bool divides = s.groups >= 1 && s.offset_groups >= 1 && s.channels % s.groups == 0 &&
                       s.out_channels % s.groups == 0 && s.channels % s.offset_groups == 0 &&
                       w[1] == s.channels / s.groups;
  const bool fits = offset[0] == s.batch && offset[1] == 2 * s.offset_groups * s.taps &&
                    (!call.has(4) || call.shape(4) == ir::Shape{s.batch, s.offset_groups * s.taps,
                                                                s.out[0], s.out[1]});
  if (!divides || !fits || x[2] < 1 || x[3] < 1) {
    return bad_input("an input {}, weight {} and offset {} do not fit each other", ir::to_string(x),
                     ir::to_string(w), ir::to_string(offset));
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1;
    const std::int64_t room =
        x[static_cast<int>(axis) + 2] + window.pads[axis] + window.pads[axis + 2] - reach;
    if (room < 0 || room / window.strides[axis] + 1 != s.out[axis])
      return bad_input("its offset has the wrong size");
  }
  if (s.taps * s.places > kMostFolded / 4) return bad_input("it is too large");
  return s;
}

// A convolution whose kernel reads displaced places: all of them are gathered, then multiplied.
Status deform_conv(OperatorCall& call) {
  for (int i = 0; i < 3; ++i) {
    if (!call.has(i) || call.rank(i) != 4)
      return bad_input("input {} is missing or not of rank 4", i);
  }
  const ir::Ints kernel(call.shape(1).begin() + 2, call.shape(1).end());
  if (call.has_attribute("kernel_shape") && call.integers("kernel_shape") != kernel)
    return bad_input("kernel_shape differs from the weight's");
  PLIMSOLL_TRY(const WindowAttributes window, window_attributes(call, call.shape(0), kernel));
  PLIMSOLL_TRY(const DeformSizes s, deform_sizes(call, window));
  Builder& builder = call.builder();
  const ir::Shape image = call.shape(0);
  const std::int64_t images = s.batch * s.offset_groups;
  const Var offset = reshape_to(call.in(2), {images, s.taps, 2, s.places});
  std::vector<AxisTaps> taps;
  for (int axis = 0; axis < 2; ++axis) {
    const Var place = select(offset, 2, axis) +
                      kernel_places(call, window, s.out, static_cast<std::size_t>(axis));
    taps.push_back(linear_taps(place, image[axis + 2], Outside::kNothing));
  }
  const std::int64_t wide = s.channels / s.offset_groups;
  const Var rows = pixel_rows(reshape_to(call.in(0), {images, wide, image[2], image[3]}));
  const Var first = reshape_to(first_pixels(builder, images, image[2] * image[3]), {images, 1, 1});
  Var columns = sample(rows, first, taps, {image[2], image[3]});
  if (call.has(4)) columns = columns * reshape_to(call.in(4), {images, s.taps, s.places, 1});
  columns = transpose_by(columns, {0, 3, 1, 2});
  const std::int64_t depth = s.channels / s.groups * s.taps;
  columns = reshape_to(columns, {s.batch, s.groups, depth, s.places});
  const Var weight = reshape_to(call.in(1), {s.groups, s.out_channels / s.groups, depth});
  Var y = reshape_to(builder.call1("matmul", {weight, columns}),
                     {s.batch, s.out_channels, s.out[0], s.out[1]});
  if (call.has(3)) y = y + reshape_to(call.in(3), {s.out_channels, 1, 1});
  return call.done(y);
}

}  // namespace

std::vector<Operator> sampling_operators() {
  return {{"GridSample", grid_sample, "align_corners mode padding_mode"},
          {"AffineGrid", affine_grid, "align_corners"},
          {"RoiAlign", roi_align,
           "coordinate_transformation_mode mode output_height output_width sampling_ratio "
           "spatial_scale"},
          {"DeformConv", deform_conv, "dilations group kernel_shape offset_group pads strides"}};
}

}  // namespace plimsoll::model::onnx
