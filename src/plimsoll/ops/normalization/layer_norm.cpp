#include <cmath>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/normalization/normalised.h"

namespace plimsoll::ops {
namespace {

constexpr double kRowEpsilon = 1e-5;

double row_epsilon_in(const ir::Attributes& attributes) {
  return attributes.real("epsilon", kRowEpsilon);
}

// A tensor as rows to be normalised: the axes before `axis`, and those from it on.
struct RowView {
  int axis = 0;
  ir::Shape outer;      // x[:axis]
  ir::Shape inner;      // x[axis:]
  ir::Shape broadcast;  // outer with ones behind, as long as x
  std::int64_t rows = 0;
  std::int64_t width = 0;
  ir::Ints axes;  // those normalised over
};

Result<RowView> row_view(const ir::Shape& x, const ir::Attributes& attributes) {
  RowView out;
  PLIMSOLL_TRY(out.axis, normal_axis(attributes.integer("axis", -1), x.rank()));
  const auto split = static_cast<std::size_t>(out.axis);
  out.outer = ir::Shape(x.dims().first(split));
  out.inner = ir::Shape(x.dims().subspan(split));
  out.broadcast = x;
  for (int axis = out.axis; axis < x.rank(); ++axis) {
    out.broadcast[axis] = 1;
    out.axes.push_back(axis);
  }
  out.rows = out.outer.elements();
  out.width = out.inner.elements();
  return out;
}

RowView row_verified(const ir::Shape& x, const ir::Attributes& attributes) {
  auto view = row_view(x, attributes);
  PLIMSOLL_CHECK(view.has_value(), "normalisation was not row_verified: {}", view.error().message);
  return *view;
}

// gamma (and beta, when given) like the inner shape, in x's dtype or the wide one.
Status expect_parameters(const Call& call, int gamma, int beta, const RowView& view,
                         ir::DType dtype) {
  PLIMSOLL_RETURN_IF_ERROR(expect_own_or_wide(call, gamma, dtype));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, gamma, view.inner));
  if (call.has(beta)) PLIMSOLL_RETURN_IF_ERROR(expect_like(call, beta, gamma));
  return {};
}

Status expect_statistic(const Call& call, int input, const RowView& view, ir::DType dtype) {
  PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, input, wide(dtype)));
  return expect_shape(call, input, view.outer);
}

Result<std::vector<TensorType>> infer_forward(const Call& call, bool centred) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_not_negative(call, "epsilon", kRowEpsilon));
  PLIMSOLL_TRY(const RowView view, row_view(call.shape(0), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_parameters(call, 1, 2, view, call.type(0).dtype));
  const TensorType statistic{wide(call.type(0).dtype), view.outer, {}};
  std::vector<TensorType> out{{call.type(0).dtype, call.shape(0), {}}, statistic};
  if (centred) out.push_back(statistic);
  return out;
}

// Inputs dy, x, gamma, then one or two statistics.
Result<std::vector<TensorType>> infer_backward(const Call& call, bool centred) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const RowView view, row_view(call.shape(0), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 1, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_parameters(call, 2, call.size(), view, call.type(0).dtype));
  PLIMSOLL_RETURN_IF_ERROR(expect_statistic(call, 3, view, call.type(0).dtype));
  if (centred) PLIMSOLL_RETURN_IF_ERROR(expect_statistic(call, 4, view, call.type(0).dtype));
  std::vector<TensorType> out{{call.type(0).dtype, call.shape(0), {}}, call.type(2)};
  if (centred) out.push_back(call.type(2));
  return out;
}

// layer_norm(x, gamma, beta?) -> y, mean, rstd

Result<std::vector<TensorType>> infer_layer_norm(const Call& call) {
  return infer_forward(call, true);
}

void evaluate_layer_norm(const Evaluation& e) {
  const RowView view = row_verified(e.in(0).type.shape, e.attributes);
  const auto count = static_cast<double>(std::max<std::int64_t>(view.width, 1));
  for (std::int64_t row = 0; row < view.rows; ++row) {
    const double* x = e.in(0).reals.data() + row * view.width;
    double* y = e.out(0).reals.data() + row * view.width;
    double mean = 0;
    for (std::int64_t i = 0; i < view.width; ++i) mean += x[i] / count;
    double var = 0;
    for (std::int64_t i = 0; i < view.width; ++i) var += (x[i] - mean) * (x[i] - mean) / count;
    const double rstd = 1 / std::sqrt(var + row_epsilon_in(e.attributes));
    e.out(1).reals.data()[row] = mean;
    e.out(2).reals.data()[row] = rstd;
    for (std::int64_t i = 0; i < view.width; ++i) {
      y[i] =
          (x[i] - mean) * rstd * e.in(1).reals.data()[i] + (e.has(2) ? e.in(2).reals.data()[i] : 0);
    }
  }
}

std::vector<Var> layer_norm_gradient(const Backward& g) {
  const Var x = g.in(0);
  std::vector<Var> out(g.inputs.size());
  if (g.dy(0)) {
    const auto adjoints =
        g.builder.call("layer_norm_grad", {g.dy(0), x, g.in(1), g.out(1), g.out(2)},
                       {{"axis", g.attributes.integer("axis", -1)}});
    std::copy_n(adjoints.begin(), std::min(out.size(), adjoints.size()), out.begin());
  }
  if (g.wants(0) && (g.dy(1) || g.dy(2))) {
    const RowView view = row_verified(x.shape(), g.attributes);
    const auto column = [&](Var v) { return v ? reshape(v, view.broadcast) : Var(); };
    const Var dx = statistics_gradient(widened(x), column(g.out(1)), column(g.out(2)),
                                       column(g.dy(1)), column(g.dy(2)), view.width);
    out[0] = plus(out[0], cast(dx, x.dtype()));
  }
  return out;
}

// layer_norm_grad(dy, x, gamma, mean, rstd) -> dx, dgamma, dbeta

Result<std::vector<TensorType>> infer_layer_norm_grad(const Call& call) {
  return infer_backward(call, true);
}

void evaluate_layer_norm_grad(const Evaluation& e) {
  const RowView view = row_verified(e.in(0).type.shape, e.attributes);
  const auto count = static_cast<double>(std::max<std::int64_t>(view.width, 1));
  const double* gamma = e.in(2).reals.data();
  for (std::int64_t row = 0; row < view.rows; ++row) {
    const double* dy = e.in(0).reals.data() + row * view.width;
    const double* x = e.in(1).reals.data() + row * view.width;
    const double mean = e.in(3).reals.data()[row];
    const double rstd = e.in(4).reals.data()[row];
    double sum = 0;
    double product = 0;
    for (std::int64_t i = 0; i < view.width; ++i) {
      const double xhat = (x[i] - mean) * rstd;
      e.out(1).reals.data()[i] += dy[i] * xhat;
      e.out(2).reals.data()[i] += dy[i];
      sum += dy[i] * gamma[i];
      product += dy[i] * gamma[i] * xhat;
    }
    for (std::int64_t i = 0; i < view.width; ++i) {
      const double xhat = (x[i] - mean) * rstd;
      e.out(0).reals.data()[row * view.width + i] =
          rstd * (dy[i] * gamma[i] - sum / count - xhat * product / count);
    }
  }
}

std::vector<Var> decompose_layer_norm_grad(const Decomposition& d) {
  const RowView view = row_verified(d.in(0).shape(), d.attributes);
  const Var dy = widened(d.in(0));
  const Var gamma = d.in(2);
  const Var rstd = reshape(d.in(4), view.broadcast);
  const Var xhat = (widened(d.in(1)) - reshape(d.in(3), view.broadcast)) * rstd;
  const Var dx = normalised_gradient(dy * widened(gamma), xhat, rstd, view.axes, view.width);
  return {cast(dx, d.in(0).dtype()), cast(sum_to(dy * xhat, gamma.shape()), gamma.dtype()),
          cast(sum_to(dy, gamma.shape()), gamma.dtype())};
}

// rms_norm(x, gamma) -> y, rstd

Result<std::vector<TensorType>> infer_rms_norm(const Call& call) {
  return infer_forward(call, false);
}

void evaluate_rms_norm(const Evaluation& e) {
  const RowView view = row_verified(e.in(0).type.shape, e.attributes);
  const auto count = static_cast<double>(std::max<std::int64_t>(view.width, 1));
  for (std::int64_t row = 0; row < view.rows; ++row) {
    const double* x = e.in(0).reals.data() + row * view.width;
    double square = 0;
    for (std::int64_t i = 0; i < view.width; ++i) square += x[i] * x[i] / count;
    const double rstd = 1 / std::sqrt(square + row_epsilon_in(e.attributes));
    e.out(1).reals.data()[row] = rstd;
    for (std::int64_t i = 0; i < view.width; ++i) {
      e.out(0).reals.data()[row * view.width + i] = x[i] * rstd * e.in(1).reals.data()[i];
    }
  }
}

std::vector<Var> rms_norm_gradient(const Backward& g) {
  const Var x = g.in(0);
  std::vector<Var> out(2);
  if (g.dy(0)) {
    out = g.builder.call("rms_norm_grad", {g.dy(0), x, g.in(1), g.out(1)},
                         {{"axis", g.attributes.integer("axis", -1)}});
  }
  if (g.wants(0) && g.dy(1)) {
    const RowView view = row_verified(x.shape(), g.attributes);
    const Var dx = statistics_gradient(widened(x), {}, reshape(g.out(1), view.broadcast), {},
                                       reshape(g.dy(1), view.broadcast), view.width);
    out[0] = plus(out[0], cast(dx, x.dtype()));
  }
  return out;
}

// rms_norm_grad(dy, x, gamma, rstd) -> dx, dgamma

Result<std::vector<TensorType>> infer_rms_norm_grad(const Call& call) {
  return infer_backward(call, false);
}

void evaluate_rms_norm_grad(const Evaluation& e) {
  const RowView view = row_verified(e.in(0).type.shape, e.attributes);
  const auto count = static_cast<double>(std::max<std::int64_t>(view.width, 1));
  const double* gamma = e.in(2).reals.data();
  for (std::int64_t row = 0; row < view.rows; ++row) {
    const double* dy = e.in(0).reals.data() + row * view.width;
    const double* x = e.in(1).reals.data() + row * view.width;
    const double rstd = e.in(3).reals.data()[row];
    double product = 0;
    for (std::int64_t i = 0; i < view.width; ++i) {
      e.out(1).reals.data()[i] += dy[i] * x[i] * rstd;
      product += dy[i] * gamma[i] * x[i] * rstd;
    }
    for (std::int64_t i = 0; i < view.width; ++i) {
      e.out(0).reals.data()[row * view.width + i] =
          rstd * (dy[i] * gamma[i] - x[i] * rstd * product / count);
    }
  }
}

std::vector<Var> decompose_rms_norm_grad(const Decomposition& d) {
  const RowView view = row_verified(d.in(0).shape(), d.attributes);
  const double share = 1.0 / static_cast<double>(std::max<std::int64_t>(view.width, 1));
  const Var dy = widened(d.in(0));
  const Var gamma = d.in(2);
  const Var rstd = reshape(d.in(3), view.broadcast);
  const Var xhat = widened(d.in(1)) * rstd;
  const Var g = dy * widened(gamma);
  const Var dx = rstd * (g - xhat * (sum_over(g * xhat, view.axes) * share));
  return {cast(dx, d.in(0).dtype()), cast(sum_to(dy * xhat, gamma.shape()), gamma.dtype())};
}

template <int kOperations>
Cost row_norm_cost(const Call& call, std::span<const TensorType> outputs) {
  Cost cost = bytes_cost(call, outputs);
  cost.operations = kOperations * static_cast<double>(outputs[0].shape.elements());
  return cost;
}

OpDefinition norm_definition(std::string_view name, Arity inputs, int outputs, InferRule infer,
                             Gradient gradient, CostRule cost, EvaluateRule evaluate,
                             DecomposeRule decompose) {
  return {.name = name,
          .inputs = inputs,
          .outputs = exactly(outputs),
          .infer = infer,
          .gradient = gradient,
          .in_place = decompose == nullptr ? InPlace::never() : InPlace::over(0),
          .cost = cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate,
          .decompose = decompose};
}

}  // namespace

LayerNorm layer_norm(Var x, Var gamma, Var beta, std::int64_t axis, double epsilon) {
  std::vector<Var> inputs{x, gamma};
  if (beta) inputs.push_back(beta);
  const auto out =
      x.builder().call("layer_norm", std::move(inputs), {{"axis", axis}, {"epsilon", epsilon}});
  return {out[0], out[1], out[2]};
}

RmsNorm rms_norm(Var x, Var gamma, std::int64_t axis, double epsilon) {
  const auto out = x.builder().call("rms_norm", {x, gamma}, {{"axis", axis}, {"epsilon", epsilon}});
  return {out[0], out[1]};
}

std::vector<OpDefinition> layer_norm_definitions() {
  return {
      norm_definition("layer_norm", between(2, 3), 3, infer_layer_norm,
                      Gradient(layer_norm_gradient), row_norm_cost<8>, evaluate_layer_norm,
                      nullptr),
      norm_definition("layer_norm_grad", exactly(5), 3, infer_layer_norm_grad,
                      Gradient::of_decomposition(), row_norm_cost<14>, evaluate_layer_norm_grad,
                      decompose_layer_norm_grad),
      norm_definition("rms_norm", exactly(2), 2, infer_rms_norm, Gradient(rms_norm_gradient),
                      row_norm_cost<4>, evaluate_rms_norm, nullptr),
      norm_definition("rms_norm_grad", exactly(4), 2, infer_rms_norm_grad,
                      Gradient::of_decomposition(), row_norm_cost<10>, evaluate_rms_norm_grad,
                      decompose_rms_norm_grad),
  };
}

}  // namespace plimsoll::ops
