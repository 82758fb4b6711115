#include "plimsoll/ops/reduction/pool.h"

#include <limits>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/reduction/window.h"

namespace plimsoll::ops {
namespace {

constexpr std::int64_t kByteIndex = 256;
constexpr std::int64_t kMostPlaces = std::numeric_limits<std::int32_t>::max();

bool ceil_mode(const AttributeReader& attributes) {
  return attributes.integer("ceil_mode") != 0;
}

// Window and sizes of pooling a tensor of this shape.
struct Pooling {
  Window window;
  std::int64_t planes = 0;
  Volume data{};
  Volume results{};
  ir::Shape y;
  ir::DType index = ir::DType::kU8;

  double taps() const { return element_count(y) * static_cast<double>(elements(window.kernel)); }
};

Result<Pooling> pooling_of(const ir::Shape& x, const AttributeReader& attributes) {
  if (x.rank() < 3 || x.rank() > 5)
    return bad_input("input has shape {}, expects a rank of 3 to 5", ir::to_string(x));
  const ir::Ints kernel = attributes.integers("kernel", {});
  if (static_cast<int>(kernel.size()) != x.rank() - 2) {
    return bad_input("kernel has {} extents, input {} expects {}", kernel.size(), ir::to_string(x),
                     x.rank() - 2);
  }
  Pooling out;
  PLIMSOLL_TRY(out.window, read_window(attributes, kernel));
  std::optional<std::int64_t> count = 1;
  for (const std::int64_t extent : kernel) count = count ? checked_multiply(*count, extent) : count;
  if (!count || *count > kMostPlaces)
    return bad_input("kernel has more than {} places", kMostPlaces);
  for (std::size_t axis = 0; axis < kVolumeAxes; ++axis) {
    const std::int64_t pad = std::max(out.window.begins[axis], out.window.ends[axis]);
    if (pad >= out.window.reach(axis)) {
      return bad_input("pads hold {}, expects less than the kernel's reach of {}", pad,
                       out.window.reach(axis));
    }
  }
  out.data = volume_of(x);
  if (elements(out.data) == 0) return bad_input("input {} has nothing to pool", ir::to_string(x));
  PLIMSOLL_TRY(out.results, places(out.window, x, ceil_mode(attributes)));
  out.planes = x[0] * x[1];
  out.y = shape_of(x[0], x[1], out.results, out.window.axes);
  out.index = *count <= kByteIndex ? ir::DType::kU8 : ir::DType::kI32;
  return out;
}

Pooling verified(const ir::Shape& x, const AttributeReader& attributes) {
  auto pooling = pooling_of(x, attributes);
  PLIMSOLL_CHECK(pooling.has_value(), "pooling was not verified: {}", pooling.error().message);
  return *pooling;
}

// Calls body(plane's data, plane's results, place, position in data, position in results) for every
// element a window reads; padding is left out.
template <typename Body>
void for_each_tap(const Pooling& p, Body body) {
  if (p.planes == 0) return;
  const std::int64_t data = elements(p.data);
  const std::int64_t results = elements(p.results);
  for_each_place(p.window, p.data, p.results,
                 [&](std::int64_t place, const std::vector<std::int64_t>& reading) {
                   for (std::int64_t plane = 0; plane < p.planes; ++plane) {
                     for (std::int64_t i = 0; i < results; ++i) {
                       const std::int64_t from = reading[static_cast<std::size_t>(i)];
                       if (from != kOutside) body(place, plane * data + from, plane * results + i);
                     }
                   }
                 });
}

ir::Attributes with_shape_of(const AttributeReader& attributes, Var x) {
  ir::Attributes out = attributes.given();
  const ir::Shape shape = x.shape();
  out.set("shape", ir::Ints(shape.begin(), shape.end()));
  return out;
}

ir::Attributes without_shape(const AttributeReader& attributes) {
  ir::Attributes out;
  for (const auto& [name, value] : attributes.given().entries()) {
    if (name != "shape") out.set(name, value);
  }
  return out;
}

Cost pool_cost(const Call& call, std::span<const TensorType> outputs) {
  return cost_with(verified(call.shape(0), call.attributes()).taps(), call, outputs);
}

Cost avg_grad_cost(const Call& call, std::span<const TensorType> outputs) {
  return cost_with(verified(outputs[0].shape, call.attributes()).taps(), call, outputs);
}

Result<std::vector<TensorType>> infer_max_pool(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const Pooling pooling, pooling_of(call.shape(0), call.attributes()));
  const ir::Layout layout = call.type(0).layout;
  return std::vector<TensorType>{{call.type(0).dtype, pooling.y, layout},
                                 {pooling.index, pooling.y, layout}};
}

void evaluate_max_pool(const Evaluation& e) {
  std::vector<double>& y = e.out(0).reals;
  std::fill(y.begin(), y.end(), -std::numeric_limits<double>::infinity());
  std::vector<bool> touched(y.size(), false);
  const Pooling pooling = verified(e.in(0).type.shape, e.attributes);
  for_each_tap(pooling, [&](std::int64_t place, std::int64_t from, std::int64_t to) {
    const double value = e.in(0).reals.data()[from];
    const auto at = static_cast<std::size_t>(to);
    if (touched[at] && !(value > y[at] || value != value)) return;  // a NaN is the result
    touched[at] = true;
    y[at] = value;
    e.out(1).integers[at] = place;
  });
}

std::vector<Var> max_pool_gradient(const Backward& g) {
  return {g.dy() ? g.builder.call1("max_pool_grad", {g.dy(), g.out(1)},
                                   with_shape_of(g.attributes, g.in(0)))
                 : Var()};
}

Result<std::vector<TensorType>> infer_max_pool_grad(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const ir::Shape x, shape_attribute(call.attributes(), "shape"));
  PLIMSOLL_TRY(const Pooling pooling, pooling_of(x, call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 0, pooling.y));
  PLIMSOLL_RETURN_IF_ERROR(expect_type(call, 1, pooling.index, pooling.y));
  return std::vector<TensorType>{{call.type(0).dtype, x, call.type(0).layout}};
}

void evaluate_max_pool_grad(const Evaluation& e) {
  const Pooling pooling = verified(e.out().type.shape, e.attributes);
  for_each_tap(pooling, [&](std::int64_t place, std::int64_t from, std::int64_t to) {
    if (e.in(1).integers.data()[to] == place)
      e.out().reals.data()[from] += e.in(0).reals.data()[to];
  });
}

std::vector<Var> max_pool_grad_gradient(const Backward& g) {
  return {g.builder.call1("max_pool_select", {g.dy(), g.in(1)}, without_shape(g.attributes)),
          Var()};
}

Result<std::vector<TensorType>> infer_max_pool_select(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const Pooling pooling, pooling_of(call.shape(0), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_type(call, 1, pooling.index, pooling.y));
  return std::vector<TensorType>{{call.type(0).dtype, pooling.y, call.type(0).layout}};
}

void evaluate_max_pool_select(const Evaluation& e) {
  const Pooling pooling = verified(e.in(0).type.shape, e.attributes);
  for_each_tap(pooling, [&](std::int64_t place, std::int64_t from, std::int64_t to) {
    if (e.in(1).integers.data()[to] == place) e.out().reals.data()[to] = e.in(0).reals.data()[from];
  });
}

std::vector<Var> max_pool_select_gradient(const Backward& g) {
  return {g.builder.call1("max_pool_grad", {g.dy(), g.in(1)}, with_shape_of(g.attributes, g.in(0))),
          Var()};
}

// How many elements each result of one plane is the mean of; zero where a window sees no data at
// all.
std::vector<double> divisors(const Pooling& p, const AttributeReader& attributes) {
  const bool with_pads = attributes.integer("count_include_pad") != 0;
  std::vector<double> out(static_cast<std::size_t>(elements(p.results)), 1.0);
  std::array<std::vector<double>, kVolumeAxes> along;
  for (std::size_t axis = 0; axis < kVolumeAxes; ++axis) {
    for (std::int64_t i = 0; i < p.results[axis]; ++i) {
      const std::int64_t begin = i * p.window.strides[axis] - p.window.begins[axis];
      const std::int64_t limit = p.data[axis] + (with_pads ? p.window.ends[axis] : 0);
      const std::int64_t end = std::min(begin + p.window.kernel[axis], limit);
      const std::int64_t counted = end - (with_pads ? begin : std::max<std::int64_t>(begin, 0));
      along[axis].push_back(static_cast<double>(std::max<std::int64_t>(counted, 0)));
    }
  }
  std::size_t at = 0;
  for (const double z : along[0]) {
    for (const double y : along[1]) {
      for (const double x : along[2]) out[at++] = z * y * x;
    }
  }
  return out;
}

Result<std::vector<TensorType>> infer_avg_pool(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const Pooling pooling, pooling_of(call.shape(0), call.attributes()));
  return std::vector<TensorType>{{call.type(0).dtype, pooling.y, call.type(0).layout}};
}

void evaluate_avg_pool(const Evaluation& e) {
  const Pooling pooling = verified(e.in(0).type.shape, e.attributes);
  if (pooling.planes == 0) return;
  for_each_tap(pooling, [&](std::int64_t, std::int64_t from, std::int64_t to) {
    e.out().reals.data()[to] += e.in(0).reals.data()[from];
  });
  const std::vector<double> divisor = divisors(pooling, e.attributes);
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    const double count = divisor[i % divisor.size()];
    if (count > 0) e.out().reals[i] /= count;
  }
}

std::vector<Var> avg_pool_gradient(const Backward& g) {
  return {g.builder.call1("avg_pool_grad", {g.dy()}, with_shape_of(g.attributes, g.in(0)))};
}

Result<std::vector<TensorType>> infer_avg_pool_grad(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const ir::Shape x, shape_attribute(call.attributes(), "shape"));
  PLIMSOLL_TRY(const Pooling pooling, pooling_of(x, call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 0, pooling.y));
  return std::vector<TensorType>{{call.type(0).dtype, x, call.type(0).layout}};
}

void evaluate_avg_pool_grad(const Evaluation& e) {
  const Pooling pooling = verified(e.out().type.shape, e.attributes);
  if (pooling.planes == 0) return;
  const std::vector<double> divisor = divisors(pooling, e.attributes);
  const auto plane = static_cast<std::int64_t>(divisor.size());
  for_each_tap(pooling, [&](std::int64_t, std::int64_t from, std::int64_t to) {
    e.out().reals.data()[from] += e.in(0).reals.data()[to] / divisor.data()[to % plane];
  });
}

std::vector<Var> avg_pool_grad_gradient(const Backward& g) {
  return {g.builder.call1("avg_pool", {g.dy()}, without_shape(g.attributes))};
}

OpDefinition pool_definition(std::string_view name, int inputs, int outputs, InferRule infer,
                             GradientRule gradient, CostRule cost, EvaluateRule evaluate) {
  return {.name = name,
          .inputs = exactly(inputs),
          .outputs = exactly(outputs),
          .infer = infer,
          .gradient = Gradient(gradient),
          .in_place = InPlace::never(),
          .cost = cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kChannels,
          .evaluate = evaluate};
}

ir::Attributes attributes_of(const PoolOptions& options) {
  ir::Attributes out{{"kernel", options.kernel}};
  if (!options.strides.empty()) out.set("strides", options.strides);
  if (!options.pads.empty()) out.set("pads", options.pads);
  if (!options.dilations.empty()) out.set("dilations", options.dilations);
  if (options.ceil_mode) out.set("ceil_mode", std::int64_t{1});
  if (options.count_include_pad) out.set("count_include_pad", std::int64_t{1});
  return out;
}

}  // namespace

MaxPool max_pool(Var x, const PoolOptions& options) {
  const auto out = x.builder().call("max_pool", {x}, attributes_of(options));
  return {out[0], out[1]};
}

Var avg_pool(Var x, const PoolOptions& options) {
  return x.builder().call1("avg_pool", {x}, attributes_of(options));
}

std::vector<OpDefinition> pool_definitions() {
  const AttributeSpec kernel = attribute::integers("kernel");
  const AttributeSpec strides = attribute::integers("strides");
  const AttributeSpec pads = attribute::integers("pads");
  const AttributeSpec dilations = attribute::integers("dilations");
  const AttributeSpec ceil = attribute::integer("ceil_mode", 0);
  const AttributeSpec counted = attribute::integer("count_include_pad", 0);
  const AttributeSpec shape = attribute::integers("shape");
  return {
      pool_definition("max_pool", 1, 2, infer_max_pool, max_pool_gradient, pool_cost,
                      evaluate_max_pool)
          .having({kernel, strides, pads, dilations, ceil}),
      pool_definition("max_pool_grad", 2, 1, infer_max_pool_grad, max_pool_grad_gradient,
                      cost_per_input<1>, evaluate_max_pool_grad)
          .having({kernel, strides, pads, dilations, ceil, shape}),
      pool_definition("max_pool_select", 2, 1, infer_max_pool_select, max_pool_select_gradient,
                      bytes_cost, evaluate_max_pool_select)
          .having({kernel, strides, pads, dilations, ceil}),
      pool_definition("avg_pool", 1, 1, infer_avg_pool, avg_pool_gradient, pool_cost,
                      evaluate_avg_pool)
          .having({kernel, strides, pads, ceil, counted}),
      pool_definition("avg_pool_grad", 1, 1, infer_avg_pool_grad, avg_pool_grad_gradient,
                      avg_grad_cost, evaluate_avg_pool_grad)
          .having({kernel, strides, pads, ceil, counted, shape}),
  };
}

}  // namespace plimsoll::ops
