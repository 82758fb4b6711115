#include <cmath>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/reduction/pool.h"

namespace plimsoll::ops {
namespace {

LrnOptions options_of(const AttributeReader& attributes) {
  return {attributes.integer("size"), attributes.real("alpha"), attributes.real("beta"),
          attributes.real("k")};
}

// [N,C,...] and how far the window reaches: channels [c - below, c + above], cut at the ends.
struct ChannelWindow {
  std::int64_t batch, channels, plane;
  std::int64_t below, above;

  std::int64_t first(std::int64_t c) const { return std::max<std::int64_t>(c - below, 0); }
  std::int64_t last(std::int64_t c) const { return std::min(c + above, channels - 1); }
};

ChannelWindow window_of(const ir::Shape& x, std::int64_t size) {
  return {x[0], x[1], x.elements(2, x.rank()), std::min((size - 1) / 2, x[1]),
          std::min(size / 2, x[1])};
}

Result<std::vector<TensorType>> infer_lrn(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 2, ir::kMaxRank));
  if (call.size() > 1) PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 1, call.shape(0)));
  const LrnOptions options = options_of(call.attributes());
  if (options.size < 1) return bad_input("size is {}, expects at least 1", options.size);
  if (!std::isfinite(options.alpha) || !std::isfinite(options.beta) || !std::isfinite(options.k)) {
    return bad_input("alpha, beta and k are {}, {} and {}, expects finite numbers", options.alpha,
                     options.beta, options.k);
  }
  return std::vector{call.type(0)};
}

// out[n,c,i] = sum of in over the channels of c's window (turned: of the channels whose window has
// c).
void sum_windows(const ChannelWindow& w, bool turned, const double* in, double* out) {
  for (std::int64_t n = 0; n < w.batch; ++n) {
    for (std::int64_t c = 0; c < w.channels; ++c) {
      for (std::int64_t other = w.first(c); other <= w.last(c); ++other) {
        const double* from = in + (n * w.channels + (turned ? c : other)) * w.plane;
        double* to = out + (n * w.channels + (turned ? other : c)) * w.plane;
        for (std::int64_t i = 0; i < w.plane; ++i) to[i] += from[i];
      }
    }
  }
}

// k + alpha/size * window sum of x^2
std::vector<double> denominators(const ChannelWindow& window, const LrnOptions& options,
                                 const Array& x) {
  std::vector<double> squares(x.reals.size());
  for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = x.reals[i] * x.reals[i];
  std::vector<double> out(x.reals.size());
  sum_windows(window, false, squares.data(), out.data());
  for (double& value : out)
    value = options.k + options.alpha / static_cast<double>(options.size) * value;
  return out;
}

void evaluate_lrn(const Evaluation& e) {
  if (e.out().elements() == 0) return;
  const LrnOptions options = options_of(e.attributes);
  const auto below = denominators(window_of(e.in(0).type.shape, options.size), options, e.in(0));
  for (std::size_t i = 0; i < below.size(); ++i) {
    e.out().reals[i] = e.in(0).reals[i] * std::pow(below[i], -options.beta);
  }
}

// dx = dy * d^-beta - 2*alpha*beta/size * x * (turned window sum of dy * x * d^(-beta-1))
void evaluate_lrn_grad(const Evaluation& e) {
  if (e.out().elements() == 0) return;
  const LrnOptions options = options_of(e.attributes);
  const Array& dy = e.in(0);
  const Array& x = e.in(1);
  const ChannelWindow window = window_of(x.type.shape, options.size);
  const auto below = denominators(window, options, x);
  std::vector<double> terms(below.size());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    terms[i] = dy.reals[i] * x.reals[i] * std::pow(below[i], -options.beta - 1);
  }
  std::vector<double> sums(below.size());
  sum_windows(window, true, terms.data(), sums.data());
  const double factor = 2 * options.alpha * options.beta / static_cast<double>(options.size);
  for (std::size_t i = 0; i < below.size(); ++i) {
    e.out().reals[i] =
        dy.reals[i] * std::pow(below[i], -options.beta) - factor * x.reals[i] * sums[i];
  }
}

std::vector<Var> lrn_gradient(const Backward& g) {
  return {g.builder.call1("lrn_grad", {g.dy(), g.in(0)}, g.attributes.given())};
}

// The window sum as average pooling along the channels: [N,C,plane] as [N,1,C,plane].
Var window_sum(Var x, const ChannelWindow& window, bool turned) {
  const std::int64_t begin = turned ? window.above : window.below;
  const std::int64_t end = turned ? window.below : window.above;
  const std::int64_t reach = begin + end + 1;
  const Var lined = reshape(x, {window.batch, 1, window.channels, window.plane});
  const Var mean = avg_pool(
      lined, {.kernel = {reach, 1}, .pads = {begin, 0, end, 0}, .count_include_pad = true});
  return reshape(mean * static_cast<double>(reach), x.shape());
}

std::vector<Var> decompose_lrn_grad(const Decomposition& d) {
  const LrnOptions options = options_of(d.attributes);
  const Var dy = d.in(0);
  const Var x = d.in(1);
  if (x.shape().elements() == 0) return {dy * x};
  const ChannelWindow window = window_of(x.shape(), options.size);
  const auto size = static_cast<double>(options.size);
  const Var below = window_sum(x * x, window, false) * (options.alpha / size) + options.k;
  const auto raised = [&](double exponent) { return pow(below, number(below, exponent)); };
  const Var sums = window_sum(dy * x * raised(-options.beta - 1), window, true);
  return {dy * raised(-options.beta) - x * sums * (2 * options.alpha * options.beta / size)};
}

// One addition for each channel of the window, and a power.
Cost lrn_cost(const Call& call, std::span<const TensorType> outputs) {
  const ChannelWindow window = window_of(outputs[0].shape, options_of(call.attributes()).size);
  const auto each = static_cast<double>(window.below + window.above + 5);
  return cost_with(element_count(outputs[0].shape) * each, call, outputs);
}

OpDefinition lrn_definition(std::string_view name, int inputs, Gradient gradient,
                            EvaluateRule evaluate, DecomposeRule decompose) {
  return {.name = name,
          .inputs = exactly(inputs),
          .outputs = exactly(1),
          .attributes = {attribute::integer("size", LrnOptions().size),
                         attribute::real("alpha", LrnOptions().alpha),
                         attribute::real("beta", LrnOptions().beta),
                         attribute::real("k", LrnOptions().k)},
          .infer = infer_lrn,
          .gradient = gradient,
          .in_place = InPlace::never(),
          .cost = lrn_cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kChannels,
          .evaluate = evaluate,
          .decompose = decompose};
}

}  // namespace

Var lrn(Var x, const LrnOptions& options) {
  return x.builder().call1(
      "lrn", {x},
      {{"size", options.size}, {"alpha", options.alpha}, {"beta", options.beta}, {"k", options.k}});
}

std::vector<OpDefinition> lrn_definitions() {
  return {lrn_definition("lrn", 1, Gradient(lrn_gradient), evaluate_lrn, nullptr),
          lrn_definition("lrn_grad", 2, Gradient::of_decomposition(), evaluate_lrn_grad,
                         decompose_lrn_grad)};
}

}  // namespace plimsoll::ops
