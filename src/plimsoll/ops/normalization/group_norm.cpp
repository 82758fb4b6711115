#include <cmath>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/normalization/normalised.h"

namespace plimsoll::ops {
namespace {

constexpr double kGroupEpsilon = 1e-5;

double group_epsilon_in(const ir::Attributes& attributes) {
  return attributes.real("epsilon", kGroupEpsilon);
}

// [N,C,...] as N*groups rows of C/groups channels of `plane` elements.
struct GroupView {
  std::int64_t batch, groups, members, plane;

  std::int64_t width() const { return members * plane; }
  ir::Shape statistic() const { return {batch, groups}; }
  ir::Shape rows() const { return {batch, groups, width()}; }
  ir::Shape column() const { return {batch, groups, 1}; }
  std::int64_t channel(std::int64_t row, std::int64_t i) const {
    return row % groups * members + i / plane;
  }
};

Result<GroupView> group_view(const ir::Shape& x, const ir::Attributes& attributes) {
  if (x.rank() < 2)
    return bad_input("input has shape {}, expects a rank of at least 2", ir::to_string(x));
  const std::int64_t groups = attributes.integer("groups", 1);
  if (groups < 1 || x[1] % groups != 0) {
    return bad_input("groups is {}, expects a divisor of the {} channels", groups, x[1]);
  }
  return GroupView{x[0], groups, x[1] / groups, x.elements(2, x.rank())};
}

GroupView group_verified(const ir::Shape& x, const ir::Attributes& attributes) {
  auto view = group_view(x, attributes);
  PLIMSOLL_CHECK(view.has_value(), "normalisation was not group_verified: {}",
                 view.error().message);
  return *view;
}

Status expect_gamma(const Call& call, int input, const ir::Shape& x, ir::DType dtype) {
  PLIMSOLL_RETURN_IF_ERROR(expect_own_or_wide(call, input, dtype));
  return expect_shape(call, input, {x[1]});
}

// group_norm(x, gamma, beta) -> y, mean, rstd

Result<std::vector<TensorType>> infer_group_norm(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_not_negative(call, "epsilon", kGroupEpsilon));
  PLIMSOLL_TRY(const GroupView view, group_view(call.shape(0), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_gamma(call, 1, call.shape(0), call.type(0).dtype));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 2, 1));
  const TensorType statistic{wide(call.type(0).dtype), view.statistic(), {}};
  return std::vector<TensorType>{{call.type(0).dtype, call.shape(0), {}}, statistic, statistic};
}

void evaluate_group_norm(const Evaluation& e) {
  const GroupView view = group_verified(e.in(0).type.shape, e.attributes);
  const auto count = static_cast<double>(std::max<std::int64_t>(view.width(), 1));
  for (std::int64_t row = 0; row < view.batch * view.groups; ++row) {
    const double* x = e.in(0).reals.data() + row * view.width();
    double* y = e.out(0).reals.data() + row * view.width();
    double mean = 0;
    for (std::int64_t i = 0; i < view.width(); ++i) mean += x[i] / count;
    double var = 0;
    for (std::int64_t i = 0; i < view.width(); ++i) var += (x[i] - mean) * (x[i] - mean) / count;
    const double rstd = 1 / std::sqrt(var + group_epsilon_in(e.attributes));
    e.out(1).reals.data()[row] = mean;
    e.out(2).reals.data()[row] = rstd;
    for (std::int64_t i = 0; i < view.width(); ++i) {
      const std::int64_t c = view.channel(row, i);
      y[i] = (x[i] - mean) * rstd * e.in(1).reals.data()[c] + e.in(2).reals.data()[c];
    }
  }
}

std::vector<Var> group_norm_gradient(const Backward& g) {
  const Var x = g.in(0);
  std::vector<Var> out(3);
  if (g.dy(0)) {
    out = g.builder.call("group_norm_grad", {g.dy(0), x, g.in(1), g.out(1), g.out(2)},
                         {{"groups", g.attributes.integer("groups", 1)}});
  }
  if (g.wants(0) && (g.dy(1) || g.dy(2))) {
    const GroupView view = group_verified(x.shape(), g.attributes);
    const auto column = [&](Var v) { return v ? reshape(v, view.column()) : Var(); };
    const Var dx =
        statistics_gradient(reshape(widened(x), view.rows()), column(g.out(1)), column(g.out(2)),
                            column(g.dy(1)), column(g.dy(2)), view.width());
    out[0] = plus(out[0], cast(reshape(dx, x.shape()), x.dtype()));
  }
  return out;
}

// group_norm_grad(dy, x, gamma, mean, rstd) -> dx, dgamma, dbeta

Result<std::vector<TensorType>> infer_group_norm_grad(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const GroupView view, group_view(call.shape(0), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 1, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_gamma(call, 2, call.shape(0), call.type(0).dtype));
  for (const int input : {3, 4}) {
    PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, input, wide(call.type(0).dtype)));
    PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, input, view.statistic()));
  }
  return std::vector<TensorType>{
      {call.type(0).dtype, call.shape(0), {}}, call.type(2), call.type(2)};
}

void evaluate_group_norm_grad(const Evaluation& e) {
  const GroupView view = group_verified(e.in(0).type.shape, e.attributes);
  const auto count = static_cast<double>(std::max<std::int64_t>(view.width(), 1));
  for (std::int64_t row = 0; row < view.batch * view.groups; ++row) {
    const double* dy = e.in(0).reals.data() + row * view.width();
    const double* x = e.in(1).reals.data() + row * view.width();
    const double mean = e.in(3).reals.data()[row];
    const double rstd = e.in(4).reals.data()[row];
    double sum = 0;
    double product = 0;
    for (std::int64_t i = 0; i < view.width(); ++i) {
      const std::int64_t c = view.channel(row, i);
      const double xhat = (x[i] - mean) * rstd;
      const double g = dy[i] * e.in(2).reals.data()[c];
      e.out(1).reals.data()[c] += dy[i] * xhat;
      e.out(2).reals.data()[c] += dy[i];
      sum += g;
      product += g * xhat;
    }
    for (std::int64_t i = 0; i < view.width(); ++i) {
      const double xhat = (x[i] - mean) * rstd;
      const double g = dy[i] * e.in(2).reals.data()[view.channel(row, i)];
      e.out(0).reals.data()[row * view.width() + i] =
          rstd * (g - sum / count - xhat * product / count);
    }
  }
}

std::vector<Var> decompose_group_norm_grad(const Decomposition& d) {
  const Var like = d.in(0);
  const GroupView view = group_verified(like.shape(), d.attributes);
  const Var dy = widened(like);
  const Var gamma = d.in(2);
  const Var rstd = reshape(d.in(4), view.column());
  const Var xhat =
      (reshape(widened(d.in(1)), view.rows()) - reshape(d.in(3), view.column())) * rstd;
  const Var g = reshape(dy * along_channels(widened(gamma), like.rank()), view.rows());
  const Var dx = normalised_gradient(g, xhat, rstd, {2}, view.width());
  const auto channel_sum = [&](Var terms) {
    return cast(reshape(sum_over(terms, all_but_channels(like.rank())), gamma.shape()),
                gamma.dtype());
  };
  return {cast(reshape(dx, like.shape()), like.dtype()),
          channel_sum(dy * reshape(xhat, like.shape())), channel_sum(dy)};
}

template <int kOperations>
Cost group_norm_cost(const Call& call, std::span<const TensorType> outputs) {
  Cost cost = bytes_cost(call, outputs);
  cost.operations = kOperations * static_cast<double>(outputs[0].shape.elements());
  return cost;
}

}  // namespace

LayerNorm group_norm(Var x, Var gamma, Var beta, std::int64_t groups, double epsilon) {
  const auto out =
      x.builder().call("group_norm", {x, gamma, beta}, {{"groups", groups}, {"epsilon", epsilon}});
  return {out[0], out[1], out[2]};
}

std::vector<OpDefinition> group_norm_definitions() {
  return {{.name = "group_norm",
           .inputs = exactly(3),
           .outputs = exactly(3),
           .infer = infer_group_norm,
           .gradient = Gradient(group_norm_gradient),
           .in_place = InPlace::never(),
           .cost = group_norm_cost<8>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_group_norm},
          {.name = "group_norm_grad",
           .inputs = exactly(5),
           .outputs = exactly(3),
           .infer = infer_group_norm_grad,
           .gradient = Gradient::of_decomposition(),
           .in_place = InPlace::over(0),
           .cost = group_norm_cost<14>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_group_norm_grad,
           .decompose = decompose_group_norm_grad}};
}

}  // namespace plimsoll::ops
