#include "plimsoll/ops/products/linear.h"

#include <algorithm>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/products/dense.h"

namespace plimsoll::ops {
namespace {

bool is_turned(const AttributeReader& attributes) {
  return attributes.integer("trans_w") != 0;
}
bool linear_with_bias(const AttributeReader& attributes) {
  return attributes.integer("bias") != 0;
}

std::int64_t last(const ir::Shape& shape) {
  return shape[shape.rank() - 1];
}
std::int64_t rows(const ir::Shape& shape) {
  return shape.elements(0, shape.rank() - 1);
}

ir::Attributes attributes_of(const LinearOptions& options) {
  ir::Attributes out;
  if (options.trans_w) out.set("trans_w", std::int64_t{1});
  return out;
}

Result<std::vector<TensorType>> infer_linear(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 1, ir::kMaxRank));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 1, 2, 2));
  const bool turned = is_turned(call.attributes());
  const std::int64_t expected = call.shape(1)[turned ? 1 : 0];
  const std::int64_t made = call.shape(1)[turned ? 0 : 1];
  if (last(call.shape(0)) != expected) {
    return bad_input("input has {} features, weight expects {}", last(call.shape(0)), expected);
  }
  if (call.has(2)) PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 2, {made}));
  ir::Shape shape = call.shape(0);
  shape[shape.rank() - 1] = made;
  return std::vector<TensorType>{{call.type(0).dtype, shape, {}}};
}

std::vector<Var> linear_gradient(const Backward& g) {
  const LinearOptions options{is_turned(g.attributes)};
  std::vector<Var> out(g.inputs.size());
  const bool wants_bias = g.inputs.size() > 2 && g.in(2) && g.wants(2);
  if (g.wants(0)) out[0] = linear(g.dy(), g.in(1), {}, {!options.trans_w});
  if (g.wants(1)) {
    const auto [dw, db] = linear_grad_weight(g.in(0), g.dy(), options, wants_bias);
    out[1] = dw;
    if (wants_bias) out[2] = db;
  } else if (wants_bias) {
    out[2] = sum_to(g.dy(), g.in(2).shape());
  }
  return out;
}

double product_operations(const ir::Shape& x, const ir::Shape& y) {
  return 2.0 * static_cast<double>(x.elements()) * static_cast<double>(last(y));
}

Cost linear_cost(const Call& call, std::span<const TensorType> outputs) {
  const double bias = call.has(2) ? element_count(outputs[0].shape) : 0;
  return cost_with(product_operations(call.shape(0), outputs[0].shape) + bias, call, outputs);
}

void evaluate_linear(const Evaluation& e) {
  if (e.out().elements() == 0) return;
  const std::int64_t inner = last(e.in(0).type.shape);
  const std::int64_t columns = last(e.out().type.shape);
  const std::int64_t count = rows(e.in(0).type.shape);
  double* y = e.out().reals.data();
  if (e.has(2)) {
    for (std::int64_t i = 0; i < count * columns; ++i) y[i] = e.in(2).reals.data()[i % columns];
  }
  const double* w = e.in(1).reals.data();
  std::vector<double> turned_w;
  if (is_turned(e.attributes)) w = (turned_w = turned(columns, inner, w)).data();
  multiply_add(count, inner, columns, e.in(0).reals.data(), w, y);
}

std::optional<Split> split_linear(const Call& call, std::span<const TensorType>) {
  if (call.shape(0).rank() < 2) return std::nullopt;
  Split out{rows(call.shape(0)), kProductGranule, {}, {Split::Output::kCut}};
  out.inputs.assign(static_cast<std::size_t>(call.size()), Split::Input::kWhole);
  out.inputs[0] = Split::Input::kCut;
  return out;
}

Result<std::vector<TensorType>> linear_infer_grad_weight(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 1, ir::kMaxRank));
  const ir::Shape& x = call.shape(0);
  const ir::Shape& dy = call.shape(1);
  const auto leading = static_cast<std::size_t>(x.rank() - 1);
  if (dy.rank() != x.rank() ||
      !std::ranges::equal(x.dims().first(leading), dy.dims().first(leading))) {
    return bad_input("input {} and gradient {} differ before the last axis", ir::to_string(x),
                     ir::to_string(dy));
  }
  const ir::DType dtype = call.type(0).dtype;
  const ir::Shape dw =
      is_turned(call.attributes()) ? ir::Shape{last(dy), last(x)} : ir::Shape{last(x), last(dy)};
  std::vector<TensorType> out{{dtype, dw, {}}};
  if (linear_with_bias(call.attributes())) out.push_back({dtype, {last(dy)}, {}});
  for (int i = 2; i < call.size(); ++i) {
    const auto sum = static_cast<std::size_t>(i - 2);
    if (!call.has(2)) return bad_input("a sum of biases goes on, that of the weight does not");
    if (!call.has(i)) continue;
    if (sum >= out.size()) return bad_input("a sum of biases goes on where none is asked for");
    PLIMSOLL_RETURN_IF_ERROR(expect_type(call, i, out[sum].dtype, out[sum].shape));
  }
  const bool goes_on = call.size() > 2 && call.has(2);
  if (goes_on && out.size() > 1 && !(call.size() > 3 && call.has(3)))
    return bad_input("the sum of the weight goes on, that of the bias does not");
  return out;
}

// dw = x^T dy and db = sum of dy: both bilinear, so their adjoints are linear layers again.
std::vector<Var> linear_grad_weight_gradient(const Backward& g) {
  const LinearOptions options{is_turned(g.attributes)};
  const Var adjoint_w = g.dy(0);
  const Var adjoint_b = g.adjoints.size() > 1 ? g.dy(1) : Var();
  std::vector<Var> out(g.inputs.size());
  if (out.size() > 2) out[2] = adjoint_w;
  if (out.size() > 3) out[3] = adjoint_b;
  if (g.wants(0) && adjoint_w) out[0] = linear(g.in(1), adjoint_w, {}, {!options.trans_w});
  if (g.wants(1)) {
    out[1] = adjoint_w ? linear(g.in(0), adjoint_w, adjoint_b, options)
                       : expand(adjoint_b, g.in(1).shape());
  }
  return out;
}

Cost linear_grad_weight_cost(const Call& call, std::span<const TensorType> outputs) {
  const double bias = outputs.size() > 1 ? element_count(call.shape(1)) : 0;
  return cost_with(product_operations(call.shape(0), call.shape(1)) + bias, call, outputs);
}

std::optional<Split> split_linear_grad_weight(const Call& call,
                                              std::span<const TensorType> outputs) {
  // A sum in bf16 would be rounded after every part.
  if (call.shape(0).rank() < 2 || call.type(0).dtype != ir::DType::kF32) return std::nullopt;
  Split out{rows(call.shape(0)), kProductGranule, {Split::Input::kCut, Split::Input::kCut}, {}};
  out.inputs.resize(static_cast<std::size_t>(call.size()), Split::Input::kWhole);
  out.outputs.assign(outputs.size(), Split::Output::kSum);
  out.sums = 2;
  return out;
}

void linear_evaluate_grad_weight(const Evaluation& e) {
  for (int i = 0; i < static_cast<int>(e.outputs.size()); ++i) {
    if (e.has(2 + i)) e.out(i).reals = e.in(2 + i).reals;
  }
  if (e.in(1).elements() == 0) return;
  const std::int64_t inner = last(e.in(0).type.shape);
  const std::int64_t columns = last(e.in(1).type.shape);
  const bool turned = is_turned(e.attributes);
  double* dw = e.out().reals.data();
  for (std::int64_t row = 0; row < rows(e.in(0).type.shape); ++row) {
    const double* x = e.in(0).reals.data() + row * inner;
    const double* dy = e.in(1).reals.data() + row * columns;
    if (turned) {
      multiply_add(columns, 1, inner, dy, x, dw);
    } else {
      multiply_add(inner, 1, columns, x, dy, dw);
    }
    if (e.outputs.size() > 1) axpy(columns, 1, dy, e.out(1).reals.data());
  }
}

}  // namespace

Var linear(Var x, Var w, Var bias, const LinearOptions& options) {
  std::vector<Var> inputs{x, w};
  if (bias) inputs.push_back(bias);
  return x.builder().call1("linear", std::move(inputs), attributes_of(options));
}

LinearWeightGradient linear_grad_weight(Var x, Var dy, const LinearOptions& options,
                                        bool linear_with_bias) {
  ir::Attributes attributes = attributes_of(options);
  if (linear_with_bias) attributes.set("bias", std::int64_t{1});
  const auto out = x.builder().call("linear_grad_weight", {x, dy}, std::move(attributes));
  return {out[0], linear_with_bias ? out[1] : Var()};
}

std::vector<OpDefinition> linear_definitions() {
  return {{.name = "linear",
           .inputs = between(2, 3),
           .outputs = exactly(1),
           .attributes = {attribute::integer("trans_w", 0)},
           .infer = infer_linear,
           .gradient = Gradient(linear_gradient),
           .in_place = InPlace::never(),
           .cost = linear_cost,
           .recompute = Recompute::kExpensive,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_linear,
           .split = split_linear},
          {.name = "linear_grad_weight",
           .inputs = between(2, 4),
           .outputs = between(1, 2),
           .attributes = {attribute::integer("trans_w", 0), attribute::integer("bias", 0)},
           .infer = linear_infer_grad_weight,
           .gradient = Gradient(linear_grad_weight_gradient),
           .in_place = InPlace::over_any_of({{0, 2}, {1, 3}}),
           .cost = linear_grad_weight_cost,
           .recompute = Recompute::kExpensive,
           .layout = LayoutRule::kPlain,
           .evaluate = linear_evaluate_grad_weight,
           .split = split_linear_grad_weight}};
}

}  // namespace plimsoll::ops
