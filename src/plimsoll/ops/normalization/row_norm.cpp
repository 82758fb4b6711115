// Layer, root-mean-square and group normalisation: one computation on rows. Layer norm's rows are
// the axes from `axis` on, with a gamma for each element of a row; group norm's are the channels of
// a group, with a gamma for each channel.
#include <algorithm>
#include <cmath>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/normalization/normalised.h"

namespace plimsoll::ops {
namespace {

struct RowView {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  std::int64_t plane = 1;   // neighbours in a row that share a parameter
  std::int64_t groups = 1;  // rows until the parameters begin again
  ir::Shape parameter;      // of gamma and beta
  ir::Shape along;          // the same, to broadcast against x
  ir::Ints parameter_axes;  // of x: those that gamma has not
  ir::Shape statistic;      // of mean and rstd
  ir::Shape apart;          // x with the axes normalised over apart from the others
  ir::Shape column;         // a statistic, to broadcast against `apart`
  ir::Ints axes;            // of `apart`: those normalised over

  double count() const { return static_cast<double>(std::max<std::int64_t>(width, 1)); }
  std::int64_t parameter_at(std::int64_t row, std::int64_t i) const {
    return row % groups * (width / plane) + i / plane;
  }
};

// The three operators: their rows with the attribute that says them, and whether they take off a
// mean.
struct LayerNormRows {
  static constexpr bool kCentred = true;
  static constexpr bool kInParts = true;  // its gradient may be computed in parts of rows
  static constexpr std::string_view kGradient = "layer_norm_grad";
  static AttributeSpec rows() { return attribute::integer("axis", -1); }

  static Result<RowView> view(const ir::Shape& x, std::int64_t given) {
    PLIMSOLL_TRY(const int axis, normal_axis(given, x.rank()));
    RowView out;
    out.statistic = ir::Shape(x.dims().first(static_cast<std::size_t>(axis)));
    out.parameter = out.along = ir::Shape(x.dims().subspan(static_cast<std::size_t>(axis)));
    out.apart = out.column = x;
    for (int i = 0; i < x.rank(); ++i) (i < axis ? out.parameter_axes : out.axes).push_back(i);
    for (int i = axis; i < x.rank(); ++i) out.column[i] = 1;
    out.rows = out.statistic.elements();
    out.width = out.parameter.elements();
    return out;
  }
};

struct RmsNormRows : LayerNormRows {
  static constexpr bool kCentred = false;
  static constexpr std::string_view kGradient = "rms_norm_grad";
};

struct GroupNormRows {
  static constexpr bool kCentred = true;
  static constexpr bool kInParts = false;
  static constexpr std::string_view kGradient = "group_norm_grad";
  static AttributeSpec rows() { return attribute::integer("groups", 1); }

  static Result<RowView> view(const ir::Shape& x, std::int64_t groups) {
    if (x.rank() < 2)
      return bad_input("input has shape {}, expects a rank of at least 2", ir::to_string(x));
    if (groups < 1 || x[1] % groups != 0) {
      return bad_input("groups is {}, expects a divisor of the {} channels", groups, x[1]);
    }
    RowView out;
    out.plane = x.elements(2, x.rank());
    out.groups = groups;
    out.rows = x[0] * groups;
    out.width = x[1] / groups * out.plane;
    out.parameter = {x[1]};
    out.along = x;
    for (int i = 0; i < x.rank(); ++i) out.along[i] = i == 1 ? x[1] : 1;
    out.parameter_axes = all_but_channels(x.rank());
    out.statistic = {x[0], groups};
    out.apart = {x[0], groups, out.width};
    out.column = {x[0], groups, 1};
    out.axes = {2};
    return out;
  }
};

template <typename Kind>
Result<RowView> view_of(const ir::Shape& x, const AttributeReader& attributes) {
  return Kind::view(x, attributes.integer(Kind::rows().name));
}

template <typename Kind>
RowView verified_view(const ir::Shape& x, const AttributeReader& attributes) {
  auto view = view_of<Kind>(x, attributes);
  PLIMSOLL_CHECK(view.has_value(), "normalisation was not verified: {}", view.error().message);
  return *view;
}

// gamma (and beta, when given) in x's dtype or the wide one.
Status expect_parameters(const Call& call, int gamma, int beta, const RowView& view) {
  PLIMSOLL_RETURN_IF_ERROR(expect_own_or_wide(call, gamma, call.type(0).dtype));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, gamma, view.parameter));
  if (call.has(beta)) PLIMSOLL_RETURN_IF_ERROR(expect_like(call, beta, gamma));
  return {};
}

// norm(x, gamma, beta?) -> y, mean where there is one, rstd

template <typename Kind>
Result<std::vector<TensorType>> infer_norm(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_not_negative(call, "epsilon"));
  PLIMSOLL_TRY(const RowView view, view_of<Kind>(call.shape(0), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_parameters(call, 1, 2, view));
  const TensorType statistic{wide(call.type(0).dtype), view.statistic, {}};
  std::vector<TensorType> out{{call.type(0).dtype, call.shape(0), {}}, statistic};
  if (Kind::kCentred) out.push_back(statistic);
  return out;
}

template <typename Kind>
void evaluate_norm(const Evaluation& e) {
  const RowView view = verified_view<Kind>(e.in(0).type.shape, e.attributes);
  const double epsilon = e.attributes.real("epsilon");
  for (std::int64_t row = 0; row < view.rows; ++row) {
    const double* x = e.in(0).reals.data() + row * view.width;
    double* y = e.out(0).reals.data() + row * view.width;
    double mean = 0;
    for (std::int64_t i = 0; Kind::kCentred && i < view.width; ++i) mean += x[i] / view.count();
    double var = 0;
    for (std::int64_t i = 0; i < view.width; ++i)
      var += (x[i] - mean) * (x[i] - mean) / view.count();
    const double rstd = 1 / std::sqrt(var + epsilon);
    if (Kind::kCentred) e.out(1).reals.data()[row] = mean;
    e.out(Kind::kCentred ? 2 : 1).reals.data()[row] = rstd;
    for (std::int64_t i = 0; i < view.width; ++i) {
      const std::int64_t at = view.parameter_at(row, i);
      y[i] = (x[i] - mean) * rstd * e.in(1).reals.data()[at];
      if (e.has(2)) y[i] += e.in(2).reals.data()[at];
    }
  }
}

template <typename Kind>
std::vector<Var> norm_gradient(const Backward& g) {
  const Var x = g.in(0);
  const Var mean = Kind::kCentred ? g.out(1) : Var();
  const Var dmean = Kind::kCentred ? g.dy(1) : Var();
  const Var rstd = g.out(Kind::kCentred ? 2 : 1);
  const Var drstd = g.dy(Kind::kCentred ? 2 : 1);
  std::vector<Var> out(g.inputs.size());
  if (g.dy(0)) {
    std::vector<Var> inputs{g.dy(0), x, g.in(1)};
    if (mean) inputs.push_back(mean);
    inputs.push_back(rstd);
    const auto adjoints =
        g.builder.call(Kind::kGradient, std::move(inputs),
                       {{std::string(Kind::rows().name), g.attributes.integer(Kind::rows().name)}});
    std::copy_n(adjoints.begin(), std::min(out.size(), adjoints.size()), out.begin());
  }
  if (g.wants(0) && (dmean || drstd)) {
    const RowView view = verified_view<Kind>(x.shape(), g.attributes);
    const auto column = [&](Var v) { return v ? reshape(v, view.column) : Var(); };
    const Var dx = statistics_gradient(reshape(widened(x), view.apart), column(mean), column(rstd),
                                       column(dmean), column(drstd), view.width);
    out[0] = plus(out[0], cast(reshape(dx, x.shape()), x.dtype()));
  }
  return out;
}

// norm_grad(dy, x, gamma, mean where there is one, rstd) -> dx, dgamma, dbeta where there is a mean
// In parts of rows the sums go on from dgamma and dbeta of the rows before, two (or one) more
// inputs.

template <typename Kind>
constexpr int kSumsBefore = Kind::kCentred ? 5 : 4;

template <typename Kind>
Result<std::vector<TensorType>> infer_norm_grad(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_TRY(const RowView view, view_of<Kind>(call.shape(0), call.attributes()));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 1, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_parameters(call, 2, call.size(), view));
  for (int input = 3; input < kSumsBefore<Kind>; ++input) {
    PLIMSOLL_RETURN_IF_ERROR(expect_type(call, input, wide(call.type(0).dtype), view.statistic));
  }
  std::vector<TensorType> out{{call.type(0).dtype, call.shape(0), {}}, call.type(2)};
  if (Kind::kCentred) out.push_back(call.type(2));
  for (int input = kSumsBefore<Kind>; input < call.size(); ++input) {
    if (!call.has(input) || call.size() < kSumsBefore<Kind> + std::ssize(out) - 1)
      return bad_input("one sum over rows goes on, another does not");
    PLIMSOLL_RETURN_IF_ERROR(expect_like(call, input, 2));
  }
  return out;
}

template <typename Kind>
std::optional<Split> split_norm(const Call& call, std::span<const TensorType> outputs) {
  const auto view = view_of<Kind>(call.shape(0), call.attributes());
  if (!view || view->groups != 1 || view->rows < 2) return std::nullopt;
  Split out;
  out.rows = view->rows;
  out.inputs.assign(static_cast<std::size_t>(call.size()), Split::Input::kWhole);
  out.inputs[0] = Split::Input::kCut;
  out.outputs.assign(outputs.size(), Split::Output::kCut);
  return out;
}

template <typename Kind>
std::optional<Split> split_norm_grad(const Call& call, std::span<const TensorType> outputs) {
  const auto view = view_of<Kind>(call.shape(0), call.attributes());
  if (!view || view->groups != 1 || view->rows < 2 || call.type(2).dtype != ir::DType::kF32)
    return std::nullopt;
  Split out;
  out.rows = view->rows;
  out.granule = kProductGranule;
  out.inputs.assign(static_cast<std::size_t>(call.size()), Split::Input::kCut);
  for (int input = 0; input < call.size(); ++input) {
    if (input == 2 || input >= kSumsBefore<Kind>)
      out.inputs[static_cast<std::size_t>(input)] = Split::Input::kWhole;
  }
  out.outputs.assign(outputs.size(), Split::Output::kSum);
  out.outputs[0] = Split::Output::kCut;
  out.sums = kSumsBefore<Kind> - 1;
  return out;
}

template <typename Kind, bool kGoesOn = true>
void evaluate_norm_grad(const Evaluation& e) {
  const RowView view = verified_view<Kind>(e.in(0).type.shape, e.attributes);
  const double* gamma = e.in(2).reals.data();
  for (int i = 1; i < static_cast<int>(e.outputs.size()); ++i) {
    if (kGoesOn && e.has(kSumsBefore<Kind> + i - 1))
      e.out(i).reals = e.in(kSumsBefore<Kind> + i - 1).reals;
  }
  for (std::int64_t row = 0; row < view.rows; ++row) {
    const double* dy = e.in(0).reals.data() + row * view.width;
    const double* x = e.in(1).reals.data() + row * view.width;
    const double mean = Kind::kCentred ? e.in(3).reals.data()[row] : 0;
    const double rstd = e.in(Kind::kCentred ? 4 : 3).reals.data()[row];
    double sum = 0;
    double product = 0;
    for (std::int64_t i = 0; i < view.width; ++i) {
      const std::int64_t at = view.parameter_at(row, i);
      const double xhat = (x[i] - mean) * rstd;
      e.out(1).reals.data()[at] += dy[i] * xhat;
      product += dy[i] * gamma[at] * xhat;
      if (!Kind::kCentred) continue;
      e.out(2).reals.data()[at] += dy[i];
      sum += dy[i] * gamma[at];
    }
    for (std::int64_t i = 0; i < view.width; ++i) {
      const double xhat = (x[i] - mean) * rstd;
      e.out(0).reals.data()[row * view.width + i] =
          rstd * (dy[i] * gamma[view.parameter_at(row, i)] - sum / view.count() -
                  xhat * product / view.count());
    }
  }
}

template <typename Kind>
std::vector<Var> decompose_norm_grad(const Decomposition& d) {
  const Var like = d.in(0);
  const RowView view = verified_view<Kind>(like.shape(), d.attributes);
  const Var dy = widened(like);
  const Var gamma = d.in(2);
  const Var rstd = reshape(d.in(Kind::kCentred ? 4 : 3), view.column);
  Var centred = reshape(widened(d.in(1)), view.apart);
  if (Kind::kCentred) centred = centred - reshape(d.in(3), view.column);
  const Var xhat = centred * rstd;
  const Var g = reshape(dy * reshape(widened(gamma), view.along), view.apart);
  const Var dx = normalised_gradient(g, xhat, rstd, view.axes, view.width, Kind::kCentred);
  const auto parameter_sum = [&](Var terms, int before) {
    const Var sum =
        cast(reshape(sum_over(terms, view.parameter_axes), gamma.shape()), gamma.dtype());
    return static_cast<int>(d.inputs.size()) > before ? d.in(before) + sum : sum;
  };
  std::vector<Var> out{cast(reshape(dx, like.shape()), like.dtype()),
                       parameter_sum(dy * reshape(xhat, like.shape()), kSumsBefore<Kind>)};
  if (Kind::kCentred) out.push_back(parameter_sum(dy, kSumsBefore<Kind> + 1));
  return out;
}

// layer_norm_grad_add(dy, x, gamma, mean, rstd, other) -> dx + other, dgamma, dbeta

Result<std::vector<TensorType>> infer_layer_norm_grad_add(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 5, 0));
  std::vector<const TensorType*> inputs;
  for (int input = 0; input < 5; ++input) inputs.push_back(&call.type(input));
  return infer_norm_grad<LayerNormRows>(Call(std::move(inputs), call.attributes()));
}

void evaluate_layer_norm_grad_add(const Evaluation& e) {
  evaluate_norm_grad<LayerNormRows, false>(e);
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) e.out().reals[i] += e.in(5).reals[i];
}

std::vector<Var> decompose_layer_norm_grad_add(const Decomposition& d) {
  std::vector<Var> out = d.builder.call(
      "layer_norm_grad", {d.in(0), d.in(1), d.in(2), d.in(3), d.in(4)}, d.attributes.given());
  out[0] = out[0] + d.in(5);
  return out;
}

OpDefinition layer_norm_grad_add_definition() {
  return {.name = "layer_norm_grad_add",
          .inputs = exactly(6),
          .outputs = exactly(3),
          .attributes = {LayerNormRows::rows()},
          .infer = infer_layer_norm_grad_add,
          .gradient = Gradient::of_decomposition(),
          .in_place = InPlace::over_any_of({{0, 0}, {0, 5}}),
          .cost = cost_per_element<15>,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate_layer_norm_grad_add,
          .decompose = decompose_layer_norm_grad_add};
}

template <typename Kind, int kOperations>
OpDefinition row_norm_definition(std::string_view name, Arity inputs) {
  return {.name = name,
          .inputs = inputs,
          .outputs = exactly(Kind::kCentred ? 3 : 2),
          .attributes = {Kind::rows(), attribute::real("epsilon", kNormEpsilon)},
          .infer = infer_norm<Kind>,
          .gradient = Gradient(norm_gradient<Kind>),
          .in_place = InPlace::never(),
          .cost = cost_per_element<kOperations>,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate_norm<Kind>,
          .split = split_norm<Kind>};
}

template <typename Kind, int kOperations>
OpDefinition row_norm_grad_definition() {
  return {.name = Kind::kGradient,
          .inputs = between(kSumsBefore<Kind>,
                            kSumsBefore<Kind> + (Kind::kInParts ? (Kind::kCentred ? 2 : 1) : 0)),
          .outputs = exactly(Kind::kCentred ? 3 : 2),
          .attributes = {Kind::rows()},
          .infer = infer_norm_grad<Kind>,
          .gradient = Gradient::of_decomposition(),
          .in_place =
              InPlace::over_any_of({{0, 0}, {1, kSumsBefore<Kind>}, {2, kSumsBefore<Kind> + 1}}),
          .cost = cost_per_element<kOperations>,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate_norm_grad<Kind>,
          .decompose = decompose_norm_grad<Kind>,
          .split = Kind::kInParts ? split_norm_grad<Kind> : nullptr};
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

LayerNorm group_norm(Var x, Var gamma, Var beta, std::int64_t groups, double epsilon) {
  const auto out =
      x.builder().call("group_norm", {x, gamma, beta}, {{"groups", groups}, {"epsilon", epsilon}});
  return {out[0], out[1], out[2]};
}

std::vector<OpDefinition> row_norm_definitions() {
  return {
      row_norm_definition<LayerNormRows, 8>("layer_norm", between(2, 3)),
      row_norm_grad_definition<LayerNormRows, 14>(),
      layer_norm_grad_add_definition(),
      row_norm_definition<RmsNormRows, 4>("rms_norm", exactly(2)),
      row_norm_grad_definition<RmsNormRows, 10>(),
      row_norm_definition<GroupNormRows, 8>("group_norm", exactly(3)),
      row_norm_grad_definition<GroupNormRows, 14>(),
  };
}

}  // namespace plimsoll::ops
