#include "plimsoll/ops/products/conv.h"

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/activation.h"
#include "plimsoll/ops/elementwise/fused_relu.h"
#include "plimsoll/ops/products/conv_geometry.h"

namespace plimsoll::ops {
namespace {

ir::Attributes attributes_of(const ConvOptions& options) {
  ir::Attributes out;
  if (!options.strides.empty()) out.set("strides", options.strides);
  if (!options.pads.empty()) out.set("pads", options.pads);
  if (!options.dilations.empty()) out.set("dilations", options.dilations);
  if (options.group != 1) out.set("group", options.group);
  return out;
}

ir::Attributes attributes_of(const ConvOptions& options, const ir::Shape& shape) {
  ir::Attributes out = attributes_of(options);
  out.set("shape", ir::Ints(shape.begin(), shape.end()));
  return out;
}

// What the attributes of any of the four say.
ConvOptions conv_options(const AttributeReader& attributes) {
  return {attributes.integers("strides", {}), attributes.integers("pads", {}),
          attributes.integers("dilations", {}), attributes.integer("group")};
}

bool with_bias(const AttributeReader& attributes) {
  return attributes.integer("bias") != 0;
}

ConvGeometry verified(const ir::Shape& x, const ir::Shape& w, const AttributeReader& attributes) {
  auto geometry = conv_geometry(x, w, attributes);
  PLIMSOLL_CHECK(geometry.has_value(), "convolution was not verified: {}",
                 geometry.error().message);
  return *geometry;
}

// conv(x, w, bias?) -> y, or relu of it

Result<std::vector<TensorType>> infer_conv(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_TRY(const ConvGeometry geometry,
               conv_geometry(call.shape(0), call.shape(1), call.attributes()));
  if (call.has(2)) PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 2, {call.shape(1)[0]}));
  return std::vector<TensorType>{{call.type(0).dtype, geometry.y_shape(), call.type(0).layout}};
}

std::vector<Var> conv_gradient(const Backward& g) {
  const ConvOptions options = conv_options(g.attributes);
  std::vector<Var> out(g.inputs.size());
  const bool wants_bias = g.inputs.size() > 2 && g.in(2) && g.wants(2);
  const Var dy = has_relu(g.attributes) ? relu_grad(g.dy(), g.out(0)) : g.dy();
  if (g.wants(0)) out[0] = conv_grad_input(dy, g.in(1), g.in(0).shape(), options);
  if (g.wants(1)) {
    const auto [dw, db] = conv_grad_weight(g.in(0), dy, g.in(1).shape(), options, wants_bias);
    out[1] = dw;
    if (wants_bias) out[2] = db;
  } else if (wants_bias) {
    out[2] = reshape(sum_over(dy, all_but_channels(dy.rank())), g.in(2).shape());
  }
  return out;
}

Cost conv_cost(const Call& call, std::span<const TensorType> outputs) {
  const ConvGeometry geometry = verified(call.shape(0), call.shape(1), call.attributes());
  const double bias = call.has(2) ? element_count(outputs[0].shape) : 0;
  return cost_with(geometry.operations() + bias, call, outputs);
}

void evaluate_conv(const Evaluation& e) {
  const ConvGeometry geometry = verified(e.in(0).type.shape, e.in(1).type.shape, e.attributes);
  if (e.has(2)) add_bias(e.in(2), e.out());
  add_conv(geometry, e.in(0).reals.data(), e.in(1).reals.data(), e.out().reals.data());
  if (!has_relu(e.attributes)) return;
  for (double& y : e.out().reals) y = y < 0 ? 0 : y;
}

// conv_grad_input(dy, w) -> dx

Result<std::vector<TensorType>> infer_grad_input(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_TRY(const ir::Shape x, shape_attribute(call.attributes(), "shape"));
  PLIMSOLL_TRY(const ConvGeometry geometry, conv_geometry(x, call.shape(1), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 0, geometry.y_shape()));
  return std::vector<TensorType>{{call.type(0).dtype, x, call.type(0).layout}};
}

std::vector<Var> grad_input_gradient(const Backward& g) {
  const ConvOptions options = conv_options(g.attributes);
  return {
      g.wants(0) ? conv(g.dy(), g.in(1), {}, options) : Var(),
      g.wants(1) ? conv_grad_weight(g.dy(), g.in(0), g.in(1).shape(), options, false).dw : Var()};
}

// Also of conv_transpose, which may have a bias.
Cost grad_input_cost(const Call& call, std::span<const TensorType> outputs) {
  const ConvGeometry geometry = verified(outputs[0].shape, call.shape(1), call.attributes());
  const double bias = call.has(2) ? element_count(outputs[0].shape) : 0;
  return cost_with(geometry.operations() + bias, call, outputs);
}

void evaluate_grad_input(const Evaluation& e) {
  const ConvGeometry geometry = verified(e.out().type.shape, e.in(1).type.shape, e.attributes);
  add_conv_grad_input(geometry, e.in(0).reals.data(), e.in(1).reals.data(), e.out().reals.data());
}

// conv_grad_weight(x, dy) -> dw(, db)

Result<std::vector<TensorType>> infer_grad_weight(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_TRY(const ir::Shape w, shape_attribute(call.attributes(), "shape"));
  PLIMSOLL_TRY(const ConvGeometry geometry, conv_geometry(call.shape(0), w, call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 1, geometry.y_shape()));
  std::vector<TensorType> out{{call.type(0).dtype, w, {}}};
  if (with_bias(call.attributes())) out.push_back({call.type(0).dtype, {w[0]}, {}});
  return out;
}

std::vector<Var> grad_weight_gradient(const Backward& g) {
  const ConvOptions options = conv_options(g.attributes);
  const Var adjoint_w = g.dy(0);
  const Var adjoint_b = g.adjoints.size() > 1 ? g.dy(1) : Var();
  const Var x = g.in(0);
  const Var dy = g.in(1);
  std::vector<Var> out(2);
  if (g.wants(0) && adjoint_w) out[0] = conv_grad_input(dy, adjoint_w, x.shape(), options);
  if (g.wants(1)) {
    out[1] = adjoint_w ? conv(x, adjoint_w, adjoint_b, options)
                       : expand(along_channels(adjoint_b, dy.rank()), dy.shape());
  }
  return out;
}

Cost grad_weight_cost(const Call& call, std::span<const TensorType> outputs) {
  const ConvGeometry geometry = verified(call.shape(0), outputs[0].shape, call.attributes());
  const double bias = outputs.size() > 1 ? element_count(call.shape(1)) : 0;
  return cost_with(geometry.operations() + bias, call, outputs);
}

void evaluate_grad_weight(const Evaluation& e) {
  const ConvGeometry geometry = verified(e.in(0).type.shape, e.out().type.shape, e.attributes);
  add_conv_grad_weight(geometry, e.in(0).reals.data(), e.in(1).reals.data(), e.out().reals.data());
  if (e.outputs.size() > 1) add_channel_sums(e.in(1), e.out(1));
}

// conv_transpose(x, w, bias?) -> y: conv_grad_input whose result's shape follows from x.

// One extent of the result: (extent - 1) * stride + reach + output_padding - pads.
Result<std::int64_t> transposed_extent(const Window& window, std::size_t axis, std::int64_t extent,
                                       std::int64_t extra) {
  if (extra < 0 || extra >= window.strides[axis]) {
    return bad_input("output_padding holds {}, expects at least 0 and less than the stride of {}",
                     extra, window.strides[axis]);
  }
  const auto placed = checked_multiply(extent - 1, window.strides[axis]);
  const auto total = placed ? checked_add(*placed, window.reach(axis) + extra) : std::nullopt;
  const std::int64_t pads = window.begins[axis] + window.ends[axis];
  if (extent < 1 || !total || *total <= pads) {
    return bad_input("an extent of {} gives no result with stride {} and {} of padding", extent,
                     window.strides[axis], pads);
  }
  return *total - pads;
}

Result<ir::Shape> transposed_shape(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 3, 5));
  const ir::Shape& x = call.shape(0);
  const ir::Shape& w = call.shape(1);
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 1, x.rank(), x.rank()));
  PLIMSOLL_TRY(const Window window, read_window(call.attributes(), w.dims().subspan(2)));
  const ir::Ints extra = call.attributes().integers(
      "output_padding", ir::Ints(static_cast<std::size_t>(window.axes), 0));
  if (static_cast<int>(extra.size()) != window.axes) {
    return bad_input("output_padding has {} numbers, expects {}", extra.size(), window.axes);
  }
  const std::int64_t group = call.attributes().integer("group");
  const auto channels = checked_multiply(w[1], group);
  if (group < 1 || !channels)
    return bad_input("group is {}, expects a divisor of {} channels", group, x[1]);
  ir::Shape out{x[0], *channels};
  for (int i = 0; i < window.axes; ++i) {
    const auto axis = static_cast<std::size_t>(kVolumeAxes - window.axes + i);
    PLIMSOLL_TRY(const std::int64_t extent,
                 transposed_extent(window, axis, x[2 + i], extra[static_cast<std::size_t>(i)]));
    out.push_back(extent);
  }
  if (!out.checked_elements()) return bad_input("its result {} is too large", ir::to_string(out));
  return out;
}

Result<std::vector<TensorType>> infer_transpose(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_TRY(const ir::Shape y, transposed_shape(call));
  PLIMSOLL_TRY(const ConvGeometry geometry, conv_geometry(y, call.shape(1), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 0, geometry.y_shape()));
  if (call.has(2)) PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 2, {y[1]}));
  return std::vector<TensorType>{{call.type(0).dtype, y, call.type(0).layout}};
}

std::vector<Var> transpose_gradient(const Backward& g) {
  const ConvOptions options = conv_options(g.attributes);
  std::vector<Var> out(g.inputs.size());
  if (g.wants(0)) out[0] = conv(g.dy(), g.in(1), {}, options);
  if (g.wants(1)) out[1] = conv_grad_weight(g.dy(), g.in(0), g.in(1).shape(), options, false).dw;
  if (g.inputs.size() > 2 && g.in(2) && g.wants(2)) {
    out[2] = reshape(sum_over(g.dy(), all_but_channels(g.dy().rank())), g.in(2).shape());
  }
  return out;
}

void evaluate_transpose(const Evaluation& e) {
  if (e.has(2)) add_bias(e.in(2), e.out());
  evaluate_grad_input(e);
}

OpDefinition conv_definition(std::string_view name, Arity inputs, Arity outputs, InferRule infer,
                             GradientRule gradient, CostRule cost, EvaluateRule evaluate,
                             std::vector<AttributeSpec> more) {
  std::vector<AttributeSpec> attributes{attribute::integers("strides"), attribute::integers("pads"),
                                        attribute::integers("dilations"),
                                        attribute::integer("group", 1)};
  attributes.insert(attributes.end(), more.begin(), more.end());
  return {.name = name,
          .inputs = inputs,
          .outputs = outputs,
          .attributes = std::move(attributes),
          .infer = infer,
          .gradient = Gradient(gradient),
          .in_place = InPlace::never(),
          .cost = cost,
          .recompute = Recompute::kExpensive,
          .layout = LayoutRule::kChannels,
          .evaluate = evaluate};
}

}  // namespace

Var conv(Var x, Var w, Var bias, const ConvOptions& options) {
  std::vector<Var> inputs{x, w};
  if (bias) inputs.push_back(bias);
  return x.builder().call1("conv", std::move(inputs), attributes_of(options));
}

Var conv_grad_input(Var dy, Var w, ir::Shape x_shape, const ConvOptions& options) {
  return dy.builder().call1("conv_grad_input", {dy, w}, attributes_of(options, x_shape));
}

ConvWeightGradient conv_grad_weight(Var x, Var dy, ir::Shape w_shape, const ConvOptions& options,
                                    bool with_bias) {
  ir::Attributes attributes = attributes_of(options, w_shape);
  if (with_bias) attributes.set("bias", std::int64_t{1});
  const auto out = x.builder().call("conv_grad_weight", {x, dy}, std::move(attributes));
  return {out[0], with_bias ? out[1] : Var()};
}

Var conv_transpose(Var x, Var w, Var bias, const ConvOptions& options,
                   const ir::Ints& output_padding) {
  std::vector<Var> inputs{x, w};
  if (bias) inputs.push_back(bias);
  ir::Attributes attributes = attributes_of(options);
  if (!output_padding.empty()) attributes.set("output_padding", output_padding);
  return x.builder().call1("conv_transpose", std::move(inputs), std::move(attributes));
}

std::vector<OpDefinition> conv_definitions() {
  std::vector<OpDefinition> out = {
      conv_definition("conv", between(2, 3), exactly(1), infer_conv, conv_gradient, conv_cost,
                      evaluate_conv, {activation_attribute()}),
      conv_definition("conv_grad_input", exactly(2), exactly(1), infer_grad_input,
                      grad_input_gradient, grad_input_cost, evaluate_grad_input,
                      {attribute::integers("shape")}),
      conv_definition("conv_grad_weight", exactly(2), between(1, 2), infer_grad_weight,
                      grad_weight_gradient, grad_weight_cost, evaluate_grad_weight,
                      {attribute::integers("shape"), attribute::integer("bias", 0)}),
      conv_definition("conv_transpose", between(2, 3), exactly(1), infer_transpose,
                      transpose_gradient, grad_input_cost, evaluate_transpose,
                      {attribute::integers("output_padding")}),
  };
  out.back().layout = LayoutRule::kPlain;
  return out;
}

}  // namespace plimsoll::ops
