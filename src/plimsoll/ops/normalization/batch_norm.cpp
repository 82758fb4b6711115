#include <cmath>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/activation.h"
#include "plimsoll/ops/elementwise/add_relu.h"
#include "plimsoll/ops/elementwise/binary_formulas.h"
#include "plimsoll/ops/elementwise/fused_relu.h"
#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/normalization/normalised.h"

namespace plimsoll::ops {
namespace {

double epsilon_in(const AttributeReader& attributes) {
  return attributes.real("epsilon");
}

Status check_options(const Call& call) {
  return expect_not_negative(call, "epsilon");
}

Status expect_channels(const Call& call, int input, std::int64_t channels, ir::DType dtype) {
  PLIMSOLL_RETURN_IF_ERROR(expect_own_or_wide(call, input, dtype));
  return expect_shape(call, input, {channels});
}

// Elements of one channel.
std::int64_t per_channel(const ir::Shape& shape) {
  return shape[0] * shape.elements(2, shape.rank());
}

// Calls body(channel, first element, elements in a row) for every plane of [N,C,...].
template <typename Body>
void for_each_plane(const ir::Shape& shape, Body body) {
  const std::int64_t plane = shape.elements(2, shape.rank());
  if (shape.elements() == 0) return;
  for (std::int64_t i = 0; i < shape[0] * shape[1]; ++i) body(i % shape[1], i * plane, plane);
}

// What one channel is multiplied by and shifted by.
struct ChannelLine {
  double mean, rstd, gamma, beta;
  double normal(double x) const { return (x - mean) * rstd; }
  double at(double x) const { return normal(x) * gamma + beta; }
};

// With gamma at that input and beta at the next.
std::vector<ChannelLine> lines_of(const Evaluation& e, const Array& mean, const Array& var,
                                  int gamma) {
  std::vector<ChannelLine> out;
  for (std::size_t c = 0; c < mean.reals.size(); ++c) {
    const double rstd = 1 / std::sqrt(var.reals[c] + epsilon_in(e.attributes));
    out.push_back({mean.reals[c], rstd, e.in(gamma).reals[c], e.in(gamma + 1).reals[c]});
  }
  return out;
}

void evaluate_lines(const Evaluation& e, const std::vector<ChannelLine>& lines) {
  const bool relu = has_relu(e.attributes);
  for_each_plane(e.in(0).type.shape, [&](std::int64_t c, std::int64_t first, std::int64_t count) {
    const ChannelLine& line = lines[static_cast<std::size_t>(c)];
    for (std::int64_t i = first; i < first + count; ++i) {
      const double y = line.at(e.in(0).reals.data()[i]);
      e.out().reals.data()[i] = relu && y < 0 ? 0 : y;
    }
  });
}

// batch_norm(x, gamma, beta) -> y, mean, var

Result<std::vector<TensorType>> infer_batch_norm(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 2, ir::kMaxRank));
  PLIMSOLL_RETURN_IF_ERROR(check_options(call));
  const std::int64_t channels = call.shape(0)[1];
  PLIMSOLL_RETURN_IF_ERROR(expect_channels(call, 1, channels, call.type(0).dtype));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 2, 1));
  const TensorType statistic{wide(call.type(0).dtype), {channels}, {}};
  return std::vector<TensorType>{call.type(0), statistic, statistic};
}

void evaluate_batch_norm(const Evaluation& e) {
  const ir::Shape& shape = e.in(0).type.shape;
  const auto count = static_cast<double>(std::max<std::int64_t>(per_channel(shape), 1));
  double* mean = e.out(1).reals.data();
  double* var = e.out(2).reals.data();
  for_each_plane(shape, [&](std::int64_t c, std::int64_t first, std::int64_t elements) {
    for (std::int64_t i = first; i < first + elements; ++i)
      mean[c] += e.in(0).reals.data()[i] / count;
  });
  for_each_plane(shape, [&](std::int64_t c, std::int64_t first, std::int64_t elements) {
    for (std::int64_t i = first; i < first + elements; ++i) {
      const double centred = e.in(0).reals.data()[i] - mean[c];
      var[c] += centred * centred / count;
    }
  });
  evaluate_lines(e, lines_of(e, e.out(1), e.out(2), 1));
}

std::vector<Var> batch_norm_gradient(const Backward& g) {
  const Var x = g.in(0);
  std::vector<Var> out(3);
  if (g.dy(0)) {
    out = g.builder.call("batch_norm_grad", {g.dy(0), x, g.in(1), g.in(2), g.out(1), g.out(2)},
                         g.attributes.given());
  }
  if (g.wants(0) && (g.dy(1) || g.dy(2))) {
    const double share =
        1.0 / static_cast<double>(std::max<std::int64_t>(per_channel(x.shape()), 1));
    Var dx;
    if (g.dy(1)) dx = expand(along_channels(g.dy(1) * share, x.rank()), x.shape());
    if (g.dy(2)) {
      const Var centred = widened(x) - along_channels(g.out(1), x.rank());
      dx = plus(dx, centred * along_channels(g.dy(2) * (2 * share), x.rank()));
    }
    out[0] = plus(out[0], cast(dx, x.dtype()));
  }
  return out;
}

// batch_norm_add_relu(x, gamma, beta, other) -> y = relu(batch_norm(x) + other), mean, var

Result<std::vector<TensorType>> infer_batch_norm_add_relu(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 3, 0));
  return infer_batch_norm(call);
}

void evaluate_batch_norm_add_relu(const Evaluation& e) {
  evaluate_batch_norm(e);
  for (std::size_t i = 0; i < e.out().reals.size(); ++i)
    e.out().reals[i] = AddRelu()(e.out().reals[i], e.in(3).reals[i]);
}

std::vector<Var> decompose_batch_norm_add_relu(const Decomposition& d) {
  const BatchNorm norm =
      batch_norm(d.in(0), d.in(1), d.in(2), {.epsilon = epsilon_in(d.attributes)});
  return {add_relu(norm.y, d.in(3)), norm.mean, norm.var};
}

// batch_norm_grad(dy, x, gamma, beta, mean, var) -> dx, dgamma, dbeta

Result<std::vector<TensorType>> infer_batch_norm_grad(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 2, ir::kMaxRank));
  PLIMSOLL_RETURN_IF_ERROR(check_options(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 1, 0));
  const std::int64_t channels = call.shape(0)[1];
  PLIMSOLL_RETURN_IF_ERROR(expect_channels(call, 2, channels, call.type(0).dtype));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 3, 2));
  for (const int input : {4, 5}) {
    PLIMSOLL_RETURN_IF_ERROR(expect_type(call, input, wide(call.type(0).dtype), {channels}));
  }
  return std::vector<TensorType>{call.type(0), call.type(2), call.type(3)};
}

void evaluate_batch_norm_grad(const Evaluation& e) {
  const ir::Shape& shape = e.in(0).type.shape;
  const auto count = static_cast<double>(std::max<std::int64_t>(per_channel(shape), 1));
  const bool relu = has_relu(e.attributes);
  const double* x = e.in(1).reals.data();
  double* dgamma = e.out(1).reals.data();
  double* dbeta = e.out(2).reals.data();
  const std::vector<ChannelLine> lines = lines_of(e, e.in(4), e.in(5), 2);
  const auto adjoint = [&](const ChannelLine& line, std::int64_t i) {
    return relu && !(line.at(x[i]) > 0) ? 0 : e.in(0).reals.data()[i];
  };
  for_each_plane(shape, [&](std::int64_t c, std::int64_t first, std::int64_t elements) {
    const ChannelLine& line = lines[static_cast<std::size_t>(c)];
    for (std::int64_t i = first; i < first + elements; ++i) {
      dgamma[c] += adjoint(line, i) * line.normal(x[i]);
      dbeta[c] += adjoint(line, i);
    }
  });
  for_each_plane(shape, [&](std::int64_t c, std::int64_t first, std::int64_t elements) {
    const ChannelLine& line = lines[static_cast<std::size_t>(c)];
    for (std::int64_t i = first; i < first + elements; ++i) {
      const double mean = dbeta[c] / count + line.normal(x[i]) * dgamma[c] / count;
      e.out(0).reals.data()[i] = line.gamma * line.rstd * (adjoint(line, i) - mean);
    }
  });
}

std::vector<Var> decompose_batch_norm_grad(const Decomposition& d) {
  const Var x = widened(d.in(1));
  const int rank = x.rank();
  const ir::Ints axes = all_but_channels(rank);
  const Var gamma = along_channels(widened(d.in(2)), rank);
  const Var rstd = along_channels(rsqrt(d.in(5) + epsilon_in(d.attributes)), rank);
  const Var xhat = (x - along_channels(d.in(4), rank)) * rstd;
  Var dy = widened(d.in(0));
  if (has_relu(d.attributes)) {
    const Var y = xhat * gamma + along_channels(widened(d.in(3)), rank);
    dy = where(greater(y, number(y, 0)), dy, number(dy, 0));
  }
  const Var dx = normalised_gradient(dy * gamma, xhat, rstd, axes, per_channel(x.shape()));
  const auto channel_sum = [&](Var terms, Var like) {
    return cast(reshape(sum_over(terms, axes), like.shape()), like.dtype());
  };
  return {cast(dx, d.in(0).dtype()), channel_sum(dy * xhat, d.in(2)), channel_sum(dy, d.in(3))};
}

// batch_norm_update(running_mean, running_var, mean, var) -> running_mean', running_var'

Status expect_statistics(const Call& call, std::int64_t count) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 1, 1));
  for (const int input : {1, 2, 3}) PLIMSOLL_RETURN_IF_ERROR(expect_like(call, input, 0));
  if (count < 1) return bad_input("count is {}, expects the elements of a channel", count);
  return {};
}

Result<std::vector<TensorType>> infer_update(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_not_negative(call, "momentum"));
  PLIMSOLL_RETURN_IF_ERROR(expect_statistics(call, call.attributes().integer("count", 0)));
  return std::vector<TensorType>{call.type(0), call.type(1)};
}

// in(0) and in(1) are the running statistics, in(2) and in(3) those of `elements` of this batch.
template <typename Input>
void move_statistics(double step, std::int64_t elements, const Input& in, std::vector<double>& mean,
                     std::vector<double>& var) {
  const auto count = static_cast<double>(elements);
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  for (std::size_t c = 0; c < in(0).size(); ++c) {
    mean[c] = (1 - step) * in(0)[c] + step * in(2)[c];
    var[c] = (1 - step) * in(1)[c] + step * unbiased * in(3)[c];
  }
}

void evaluate_update(const Evaluation& e) {
  const auto in = [&](int i) -> const std::vector<double>& { return e.in(i).reals; };
  move_statistics(e.attributes.real("momentum"), e.attributes.integer("count"), in, e.out(0).reals,
                  e.out(1).reals);
}

// batch_norm_update_group: 16 of them, kind by kind

// One norm of a group, as batch_norm_update sees it.
Call one_norm(const Call& call, int norm) {
  std::vector<const TensorType*> inputs;
  for (int kind = 0; kind < 4; ++kind) inputs.push_back(&call.type(kind * kStatisticsGroup + norm));
  return Call(std::move(inputs), call.attributes());
}

Result<std::vector<TensorType>> infer_update_group(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_not_negative(call, "momentum"));
  const ir::Ints counts = call.attributes().integers("counts");
  if (std::ssize(counts) != kStatisticsGroup)
    return bad_input("{} counts for {} norms", counts.size(), kStatisticsGroup);
  std::vector<TensorType> out(std::size_t{2} * kStatisticsGroup);
  for (int norm = 0; norm < kStatisticsGroup; ++norm) {
    const auto at = static_cast<std::size_t>(norm);
    if (const Status fits = expect_statistics(one_norm(call, norm), counts[at]); !fits)
      return forward(fits, fmt::format("norm {}", norm));
    out[at] = call.type(norm);
    out[kStatisticsGroup + at] = call.type(kStatisticsGroup + norm);
  }
  return out;
}

void evaluate_update_group(const Evaluation& e) {
  const ir::Ints counts = e.attributes.integers("counts");
  for (int norm = 0; norm < kStatisticsGroup; ++norm) {
    const auto in = [&](int kind) -> const std::vector<double>& {
      return e.in(kind * kStatisticsGroup + norm).reals;
    };
    move_statistics(e.attributes.real("momentum"), counts[static_cast<std::size_t>(norm)], in,
                    e.out(norm).reals, e.out(kStatisticsGroup + norm).reals);
  }
}

Cost update_group_cost(const Call& call, std::span<const TensorType> outputs) {
  double elements = 0;
  for (const TensorType& type : outputs.first(kStatisticsGroup))
    elements += element_count(type.shape);
  return cost_with(7 * elements, call, outputs);
}

std::vector<InPlace::Pair> update_group_pairs() {
  std::vector<InPlace::Pair> out;
  for (int i = 0; i < 2 * kStatisticsGroup; ++i) out.push_back({i, i});
  return out;
}

// batch_norm_inference(x, gamma, beta, mean, var) -> y

Result<std::vector<TensorType>> infer_inference(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 2, ir::kMaxRank));
  PLIMSOLL_RETURN_IF_ERROR(check_options(call));
  for (const int input : {1, 2, 3, 4}) {
    PLIMSOLL_RETURN_IF_ERROR(expect_channels(call, input, call.shape(0)[1], call.type(0).dtype));
  }
  return std::vector{call.type(0)};
}

void evaluate_inference(const Evaluation& e) {
  evaluate_lines(e, lines_of(e, e.in(3), e.in(4), 1));
}

std::vector<Var> decompose_inference(const Decomposition& d) {
  const int rank = d.in(0).rank();
  const auto channels = [&](int input) { return along_channels(widened(d.in(input)), rank); };
  const Var rstd = rsqrt(channels(4) + epsilon_in(d.attributes));
  const Var y = (widened(d.in(0)) - channels(3)) * (rstd * channels(1)) + channels(2);
  return {cast(has_relu(d.attributes) ? relu(y) : y, d.in(0).dtype())};
}

ir::Attributes attributes_of(const BatchNormOptions& options) {
  ir::Attributes out{{"epsilon", options.epsilon}};
  if (options.relu) out.set("activation", std::string("relu"));
  return out;
}

OpDefinition norm_definition(std::string_view name, int inputs, int outputs, InferRule infer,
                             Gradient gradient, const InPlace& in_place, CostRule cost,
                             EvaluateRule evaluate, DecomposeRule decompose) {
  return {.name = name,
          .inputs = exactly(inputs),
          .outputs = exactly(outputs),
          .infer = infer,
          .gradient = gradient,
          .in_place = in_place,
          .cost = cost,
          .recompute = in_place.must() ? Recompute::kNever : Recompute::kCheap,
          .layout = in_place.must() ? LayoutRule::kPlain : LayoutRule::kChannels,
          .evaluate = evaluate,
          .decompose = decompose};
}

}  // namespace

BatchNorm batch_norm(Var x, Var gamma, Var beta, const BatchNormOptions& options) {
  const auto out = x.builder().call("batch_norm", {x, gamma, beta}, attributes_of(options));
  return {out[0], out[1], out[2]};
}

Var batch_norm_inference(Var x, Var gamma, Var beta, Var mean, Var var,
                         const BatchNormOptions& options) {
  return x.builder().call1("batch_norm_inference", {x, gamma, beta, mean, var},
                           attributes_of(options));
}

RunningStatistics batch_norm_update(RunningStatistics running, Var mean, Var var,
                                    std::int64_t count, double momentum) {
  const auto out = mean.builder().call("batch_norm_update", {running.mean, running.var, mean, var},
                                       {{"count", count}, {"momentum", momentum}});
  return {out[0], out[1]};
}

std::vector<OpDefinition> batch_norm_definitions() {
  const std::vector<AttributeSpec> attributes{attribute::real("epsilon", kNormEpsilon),
                                              activation_attribute()};
  return {
      norm_definition("batch_norm", 3, 3, infer_batch_norm, Gradient(batch_norm_gradient),
                      InPlace::never(), cost_per_element<7>, evaluate_batch_norm, nullptr)
          .having(attributes),
      norm_definition("batch_norm_add_relu", 4, 3, infer_batch_norm_add_relu,
                      Gradient::of_decomposition(), InPlace::over(3), cost_per_element<9>,
                      evaluate_batch_norm_add_relu, decompose_batch_norm_add_relu)
          .having({attribute::real("epsilon", kNormEpsilon)}),
      norm_definition("batch_norm_grad", 6, 3, infer_batch_norm_grad, Gradient::of_decomposition(),
                      InPlace::over(0), cost_per_element<11>, evaluate_batch_norm_grad,
                      decompose_batch_norm_grad)
          .having(attributes),
      norm_definition("batch_norm_update", 4, 2, infer_update, Gradient::none(),
                      InPlace::update({{0, 0}, {1, 1}}), cost_per_element<7>, evaluate_update,
                      nullptr)
          .having({attribute::real("momentum", 0.1), attribute::integer("count")}),
      norm_definition("batch_norm_update_group", 4 * kStatisticsGroup, 2 * kStatisticsGroup,
                      infer_update_group, Gradient::none(), InPlace::update(update_group_pairs()),
                      update_group_cost, evaluate_update_group, nullptr)
          .having({attribute::real("momentum", 0.1), attribute::integers("counts")}),
      norm_definition("batch_norm_inference", 5, 1, infer_inference, Gradient::of_decomposition(),
                      InPlace::over(0), cost_per_element<2>, evaluate_inference,
                      decompose_inference)
          .having(attributes),
  };
}

}  // namespace plimsoll::ops
