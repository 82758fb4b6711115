// Resize and Upsample.
//
// Resizing works along one axis at a time: each output element is a weighted sum of input elements
// of its row, and the weights depend on the sizes only. Nearest is a gather along the axis,
// everything else a product with a small matrix of weights [in, out]; so every mode, rounding and
// coordinate rule of ONNX is a way to fill a table at import, and gradients need nothing new.
#include <algorithm>
#include <cmath>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

struct Axis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  double scale = 1;
  double roi_start = 0;
  double roi_end = 1;
};

struct Rules {
  std::string mode;         // nearest, linear, cubic
  std::string coordinates;  // half_pixel, ...
  std::string rounding;     // of nearest
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

// Where output element i lies on the input's axis.
double coordinate(const Rules& rules, const Axis& axis, std::int64_t i) {
  const auto at = static_cast<double>(i);
  const auto in = static_cast<double>(axis.in);
  const auto out = static_cast<double>(axis.out);
  const double half = (at + 0.5) / axis.scale - 0.5;
  if (rules.coordinates == "asymmetric") return at / axis.scale;
  // With scales given, the corners are those of the size before it is rounded down.
  if (rules.coordinates == "align_corners")
    return axis.out == 1 ? 0 : at * (in - 1) / (axis.scale * in - 1);
  if (rules.coordinates == "pytorch_half_pixel") return axis.out > 1 ? half : 0;
  if (rules.coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (rules.coordinates == "half_pixel_symmetric")
    return half + in / 2 * (1 - out / (axis.scale * in));
  if (rules.coordinates == "tf_crop_and_resize") {
    if (axis.out > 1)
      return axis.roi_start * (in - 1) +
             at * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1);
    return 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
  }
  return half;
}

std::int64_t nearest(const Rules& rules, double x, std::int64_t in) {
  double place = std::ceil(x - 0.5);  // round_prefer_floor
  if (rules.rounding == "round_prefer_ceil") place = std::floor(x + 0.5);
  if (rules.rounding == "floor") place = std::floor(x);
  if (rules.rounding == "ceil") place = std::ceil(x);
  return static_cast<std::int64_t>(std::clamp(place, 0.0, static_cast<double>(in - 1)));
}

double kernel(const Rules& rules, double distance) {
  const double d = std::abs(distance);
  if (rules.mode == "linear") return std::max(0.0, 1 - d);
  const double a = rules.cubic_a;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

// The weights of one output element, added into its column.
void fill_column(const Rules& rules, const Axis& axis, double x, std::vector<double>& weights,
                 std::int64_t column) {
  const double squeeze = rules.antialias ? std::min(axis.scale, 1.0) : 1;
  const double reach = (rules.mode == "linear" ? 1 : 2) / squeeze;
  const auto first = static_cast<std::int64_t>(std::floor(x - reach));
  const auto last = static_cast<std::int64_t>(std::ceil(x + reach));
  double total = 0;
  for (std::int64_t j = first; j <= last; ++j) {
    if (rules.exclude_outside && (j < 0 || j >= axis.in)) continue;
    total += kernel(rules, (static_cast<double>(j) - x) * squeeze);
  }
  const bool normalise = (rules.exclude_outside || rules.antialias) && total != 0;
  for (std::int64_t j = first; j <= last; ++j) {
    if (rules.exclude_outside && (j < 0 || j >= axis.in)) continue;
    const double weight =
        kernel(rules, (static_cast<double>(j) - x) * squeeze) / (normalise ? total : 1);
    const std::int64_t row = std::clamp<std::int64_t>(j, 0, axis.in - 1);
    weights[static_cast<std::size_t>(row * axis.out + column)] += weight;
  }
}

Result<Var> resize_axis(OperatorCall& call, Var x, int at, const Rules& rules, const Axis& axis) {
  Builder& builder = call.builder();
  const bool crop = rules.coordinates == "tf_crop_and_resize";
  if (rules.mode == "nearest") {
    ir::Ints indices;
    for (std::int64_t i = 0; i < axis.out; ++i)
      indices.push_back(nearest(rules, coordinate(rules, axis, i), axis.in));
    return builder.call1("gather",
                         {x, call.constant(Array::of_integers({axis.out}, std::move(indices)))},
                         {{"axis", std::int64_t{at}}});
  }
  if (axis.in * axis.out > kMostFolded)
    return bad_input("{} to {} elements is too large a step", axis.in, axis.out);
  std::vector<double> weights(static_cast<std::size_t>(axis.in * axis.out), 0);
  std::vector<double> outside(static_cast<std::size_t>(axis.out), 0);
  bool any_outside = false;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const double place = coordinate(rules, axis, i);
    if (crop && (place < 0 || place > static_cast<double>(axis.in - 1))) {
      outside[static_cast<std::size_t>(i)] = 1;
      any_outside = true;
      continue;
    }
    fill_column(rules, axis, std::clamp(place, -1e9, 1e9), weights, i);
  }
  const Var table =
      call.constant(Array::of_reals({axis.in, axis.out}, std::move(weights), x.dtype()));
  ir::Ints perm = range(0, x.rank());
  std::swap(perm[static_cast<std::size_t>(at)], perm.back());
  Var y = builder.call1("linear", {transpose_by(x, perm), table});
  if (any_outside) {
    const Var mask = call.constant(Array::of_reals({axis.out}, std::move(outside), x.dtype()));
    // Inside the extrapolated part everything is one number: zero weights there, so adding it is
    // enough, unless an earlier axis was extrapolated; then that number would be scaled.
    y = builder.call1("where",
                      {cast_to(mask, ir::DType::kBool), ops::number(y, rules.extrapolation), y});
  }
  return transpose_by(y, perm);
}

struct Target {
  std::vector<Axis> axes;  // one per axis of the input
};

Status fill_sizes(OperatorCall& call, const ir::Ints& sizes, const ir::Ints& axes, Target& target) {
  if (sizes.size() != axes.size())
    return bad_input("has {} sizes for {} axes", sizes.size(), axes.size());
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  double common = policy == "not_larger" ? 1e300 : 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Axis& axis = target.axes[static_cast<std::size_t>(axes[i])];
    if (sizes[i] < 1 || sizes[i] > (1LL << 31) || axis.in < 1)
      return bad_input("a size of {} makes no sense", sizes[i]);
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.in);
    axis.out = sizes[i];
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  if (policy == "stretch") return {};
  for (const std::int64_t at : axes) {
    Axis& axis = target.axes[static_cast<std::size_t>(at)];
    axis.scale = common;
    axis.out = static_cast<std::int64_t>(std::floor(common * static_cast<double>(axis.in) + 0.5));
  }
  return {};
}

Status fill_scales(const std::vector<double>& scales, const ir::Ints& axes, Target& target) {
  if (scales.size() != axes.size())
    return bad_input("has {} scales for {} axes", scales.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Axis& axis = target.axes[static_cast<std::size_t>(axes[i])];
    const double size = std::floor(scales[i] * static_cast<double>(axis.in));
    if (!(scales[i] > 0) || !(size < 2e9))
      return bad_input("a scale of {} makes no sense", scales[i]);
    axis.scale = scales[i];
    axis.out = static_cast<std::int64_t>(size);
  }
  return {};
}

std::vector<double> numbers(const Array& array) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < array.elements(); ++i) out.push_back(array.number(i));
  return out;
}

Result<Target> target_of(OperatorCall& call) {
  const ir::Shape& shape = call.shape(0);
  Target target;
  for (const std::int64_t extent : shape) target.axes.push_back({extent, extent, 1, 0, 1});
  ir::Ints axes = call.integers("axes", range(0, shape.rank()));
  for (std::int64_t& axis : axes) {
    PLIMSOLL_TRY(axis, normal_axis_of(axis, shape.rank()));
  }
  const bool upsample = call.node().op == "Upsample";
  const int scales_at = upsample || call.version() < 11 ? 1 : 2;
  if (upsample && call.version() < 9) {
    const auto* scales = call.attribute("scales");
    if (scales == nullptr) return bad_input("scales are missing");
    PLIMSOLL_RETURN_IF_ERROR(
        fill_scales({scales->floats.begin(), scales->floats.end()}, axes, target));
    return target;
  }
  const bool has_sizes = call.version() >= 11 && call.has(3) && call.shape(3).elements() > 0;
  if (has_sizes) {
    PLIMSOLL_TRY(const ir::Ints sizes, call.known_integers(3, "sizes"));
    PLIMSOLL_RETURN_IF_ERROR(fill_sizes(call, sizes, axes, target));
  } else {
    PLIMSOLL_TRY(const Array* scales, call.must_know(scales_at, "scales"));
    PLIMSOLL_RETURN_IF_ERROR(fill_scales(numbers(*scales), axes, target));
  }
  if (call.text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    PLIMSOLL_TRY(const Array* roi, call.must_know(1, "roi"));
    if (roi->elements() != static_cast<std::int64_t>(axes.size()) * 2)
      return bad_input("roi has the wrong length");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      target.axes[static_cast<std::size_t>(axes[i])].roi_start =
          roi->number(static_cast<std::int64_t>(i));
      target.axes[static_cast<std::size_t>(axes[i])].roi_end =
          roi->number(static_cast<std::int64_t>(i + axes.size()));
    }
  }
  return target;
}

Status resize(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its input is missing");
  Rules rules;
  rules.mode = call.text("mode", "nearest");
  if (rules.mode == "bilinear" || rules.mode == "trilinear") rules.mode = "linear";
  const bool old = call.version() < 11 || call.node().op == "Upsample";
  rules.coordinates =
      old ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel");
  rules.rounding = old ? "floor" : call.text("nearest_mode", "round_prefer_floor");
  rules.cubic_a = call.real("cubic_coeff_a", -0.75);
  rules.exclude_outside = call.integer("exclude_outside", 0) != 0;
  rules.antialias = call.integer("antialias", 0) != 0;
  rules.extrapolation = call.real("extrapolation_value", 0);
  if (rules.mode != "nearest" && rules.mode != "linear" && rules.mode != "cubic")
    return bad_input("mode '{}' is unknown", rules.mode);
  PLIMSOLL_TRY(const Target target, target_of(call));
  const ir::DType dtype = call.dtype(0);
  Var y = call.in(0);
  if (rules.mode != "nearest" && !ir::is_float(dtype)) y = cast_to(y, ir::DType::kF32);
  for (int at = 0; at < call.rank(0); ++at) {
    const Axis& axis = target.axes[static_cast<std::size_t>(at)];
    const bool crop =
        rules.coordinates == "tf_crop_and_resize" && (axis.roi_start != 0 || axis.roi_end != 1);
    if (axis.in == axis.out && axis.scale == 1 && !crop) continue;
    PLIMSOLL_TRY(y, resize_axis(call, y, at, rules, axis));
    if (call.builder().error()) return {};
  }
  y = cast_to(y, dtype);
  if (y.id() == call.in(0).id()) {
    call.out_alias(0, call.input(0));
  } else {
    call.out(0, y);
  }
  return {};
}

}  // namespace

std::vector<Operator> resize_operators() {
  return {{"Resize", resize,
           "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
           "extrapolation_value keep_aspect_ratio_policy mode nearest_mode"},
          {"Upsample", resize, "mode scales"}};
}

}  // namespace plimsoll::model::onnx
