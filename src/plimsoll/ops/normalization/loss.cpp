#include "plimsoll/ops/normalization/loss.h"

#include <cmath>
#include <limits>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"

namespace plimsoll::ops {
namespace {

std::int64_t ignored(const AttributeReader& attributes) {
  return attributes.integer("ignore_index");
}

bool is_per_row(const AttributeReader& attributes) {
  return attributes.integer("per_row") != 0;
}

// The logits' shape without its last axis.
ir::Shape row_shape(const ir::Shape& logits) {
  return ir::Shape(logits.dims().first(static_cast<std::size_t>(logits.rank() - 1)));
}

// The same with an extent of 1 at the end, to broadcast against the logits.
ir::Shape column_shape(const ir::Shape& logits) {
  ir::Shape out = logits;
  out[out.rank() - 1] = 1;
  return out;
}

Status check_logits(const Call& call, int logits) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, logits));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, logits, 1, ir::kMaxRank));
  const ir::Shape& shape = call.shape(logits);
  if (shape[shape.rank() - 1] < 1)
    return bad_input("logits {} have no classes", ir::to_string(shape));
  PLIMSOLL_RETURN_IF_ERROR(expect_integer(call, logits + 1));
  return expect_shape(call, logits + 1, row_shape(shape));
}

Result<std::vector<TensorType>> infer_cross_entropy(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_logits(call, 0));
  const ir::DType dtype = wide(call.type(0).dtype);
  const ir::Shape rows = row_shape(call.shape(0));
  return std::vector<TensorType>{{dtype, is_per_row(call.attributes()) ? rows : ir::Shape{}, {}},
                                 {dtype, rows, {}}};
}

Result<std::vector<TensorType>> infer_cross_entropy_grad(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_logits(call, 1));
  const ir::DType dtype = wide(call.type(1).dtype);
  PLIMSOLL_RETURN_IF_ERROR(expect_type(call, 0, dtype, {}));
  PLIMSOLL_RETURN_IF_ERROR(expect_type(call, 3, dtype, row_shape(call.shape(1))));
  if (call.has(4)) PLIMSOLL_RETURN_IF_ERROR(expect_integer(call, 4));
  return std::vector{call.type(1)};
}

Result<std::vector<TensorType>> infer_mean_loss(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_integer(call, 1));
  PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 1, call.shape(0)));
  return std::vector<TensorType>{{call.type(0).dtype, {}, {}}};
}

// Which rows count, and how many. A label that names no class and is not the one to ignore counts,
// and has neither loss nor gradient: both are NaN, so that the mistake shows.
struct Rows {
  std::int64_t classes;
  std::int64_t ignore;
  const std::vector<std::int64_t>& labels;

  bool counts(std::int64_t row) const { return label(row) != ignore; }
  bool exists(std::int64_t row) const { return label(row) >= 0 && label(row) < classes; }
  std::int64_t label(std::int64_t row) const { return labels[static_cast<std::size_t>(row)]; }
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t counting() const {
    std::int64_t out = 0;
    for (std::int64_t row = 0; row < size(); ++row) out += counts(row);
    return out;
  }
};

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double log_sum_exp(std::int64_t count, const double* x) {
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, x[i]);
  if (std::isinf(largest)) return largest;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(x[i] - largest);
  return largest + std::log(sum);
}

void evaluate_cross_entropy(const Evaluation& e) {
  const ir::Shape& shape = e.in(0).type.shape;
  const Rows rows{shape[shape.rank() - 1], ignored(e.attributes), e.in(1).integers};
  const bool per_row = is_per_row(e.attributes);
  double sum = 0;
  for (std::int64_t row = 0; row < rows.size(); ++row) {
    const double* logits = e.in(0).reals.data() + row * rows.classes;
    const double lse = log_sum_exp(rows.classes, logits);
    e.out(1).reals[static_cast<std::size_t>(row)] = lse;
    if (!rows.counts(row)) continue;
    const double loss = rows.exists(row) ? lse - logits[rows.label(row)] : kNone;
    if (per_row) e.out(0).reals[static_cast<std::size_t>(row)] = loss;
    sum += loss;
  }
  if (!per_row) e.out(0).reals[0] = sum / static_cast<double>(rows.counting());
}

void evaluate_mean_loss(const Evaluation& e) {
  const Rows rows{0, ignored(e.attributes), e.in(1).integers};
  double sum = 0;
  for (std::int64_t row = 0; row < rows.size(); ++row) {
    if (rows.counts(row)) sum += e.in(0).reals[static_cast<std::size_t>(row)];
  }
  e.out(0).reals[0] = sum / static_cast<double>(rows.counting());
}

void evaluate_cross_entropy_grad(const Evaluation& e) {
  const ir::Shape& shape = e.in(1).type.shape;
  const Rows rows{shape[shape.rank() - 1], ignored(e.attributes), e.in(2).integers};
  const Rows all{rows.classes, rows.ignore, e.has(4) ? e.in(4).integers : e.in(2).integers};
  const double scale = e.in(0).reals[0] / static_cast<double>(all.counting());
  for (std::int64_t row = 0; row < rows.size(); ++row) {
    if (!rows.counts(row)) continue;
    const double* logits = e.in(1).reals.data() + row * rows.classes;
    double* out = e.out().reals.data() + row * rows.classes;
    const double lse = e.in(3).reals[static_cast<std::size_t>(row)];
    for (std::int64_t i = 0; i < rows.classes; ++i)
      out[i] = rows.exists(row) ? scale * std::exp(logits[i] - lse) : kNone;
    if (rows.exists(row)) out[rows.label(row)] -= scale;
  }
}

Var probabilities(Var logits, Var lse) {
  return exp(widened(logits) - reshape(lse, column_shape(logits.shape())));
}

// 1 where the row counts, else 0.
Var counts_of(Var labels, std::int64_t ignore, ir::DType dtype) {
  const Var is_ignored = equal(labels, number(labels, static_cast<double>(ignore)));
  return cast(logical_not(is_ignored), dtype);
}

// Probabilities less one at the label, in rows that count.
Var slope_of(Var logits, Var labels_of_rows, Var lse, std::int64_t ignore) {
  const Var labels = reshape(labels_of_rows, column_shape(logits.shape()));
  const Var class_numbers = iota(logits.builder(), {labels.dtype(), {logits.dim(-1)}, {}}, 0);
  const Var counts = counts_of(labels, ignore, lse.dtype());
  const Var is_ignored = equal(labels, number(labels, static_cast<double>(ignore)));
  const Var hit = logical_and(equal(class_numbers, labels), logical_not(is_ignored));
  const Var one_at_label = cast(hit, lse.dtype());
  // The root of -1, NaN, in rows that count and have no label among the classes; else of 0.
  const Var outside = sqrt(sum_over(one_at_label, {-1}) - counts);
  return probabilities(logits, lse) * counts - one_at_label + outside;
}

std::vector<Var> cross_entropy_gradient(const Backward& g) {
  const Var logits = g.in(0);
  const Var lse = g.out(1);
  Var out;
  if (g.dy(0) && is_per_row(g.attributes)) {
    const Var adjoint = reshape(g.dy(0), column_shape(logits.shape()));
    out = cast(slope_of(logits, g.in(1), lse, ignored(g.attributes)) * adjoint, logits.dtype());
  } else if (g.dy(0)) {
    out = g.builder.call1("cross_entropy_grad", {g.dy(0), logits, g.in(1), lse},
                          {{"ignore_index", ignored(g.attributes)}});
  }
  if (g.dy(1)) {
    const Var spread_adjoint = reshape(g.dy(1), column_shape(logits.shape()));
    out = plus(out, cast(spread_adjoint * probabilities(logits, lse), logits.dtype()));
  }
  return {out, Var()};
}

// dloss / counting * (probabilities - one at the label), in rows that count.
std::vector<Var> decompose_cross_entropy_grad(const Decomposition& d) {
  const Var dloss = d.in(0);
  const Var logits = d.in(1);
  const std::int64_t ignore = ignored(d.attributes);
  const bool parts = d.inputs.size() > 4 && d.in(4);
  const Var counts = counts_of(parts ? d.in(4) : d.in(2), ignore, dloss.dtype());
  const Var counting = maximum(sum(counts), number(dloss, 1));
  const Var slope = slope_of(logits, d.in(2), d.in(3), ignore);
  return {cast(slope * (dloss / counting), logits.dtype())};
}

std::vector<Var> mean_loss_gradient(const Backward& g) {
  const Var counts = counts_of(g.in(1), ignored(g.attributes), g.in(0).dtype());
  const Var counting = maximum(sum(counts), number(g.dy(), 1));
  return {counts * (g.dy() / counting), Var()};
}

// Rows of the loss; the whole loss only once it is one of every row.
std::optional<Split> split_cross_entropy(const Call& call, std::span<const TensorType>) {
  const ir::Shape& logits = call.shape(0);
  if (!is_per_row(call.attributes()) || logits.rank() < 2) return std::nullopt;
  return Split{logits.elements(0, logits.rank() - 1),
               1,
               {Split::Input::kCut, Split::Input::kCut},
               {Split::Output::kCut, Split::Output::kCut}};
}

std::optional<Split> split_cross_entropy_grad(const Call& call, std::span<const TensorType>) {
  const ir::Shape& logits = call.shape(1);
  if (!call.has(4) || logits.rank() < 2) return std::nullopt;
  using enum Split::Input;
  return Split{logits.elements(0, logits.rank() - 1),
               1,
               {kWhole, kCut, kCut, kCut, kWhole},
               {Split::Output::kCut}};
}

}  // namespace

CrossEntropy cross_entropy(Var logits, Var labels, std::int64_t ignore_index) {
  const auto out =
      logits.builder().call("cross_entropy", {logits, labels}, {{"ignore_index", ignore_index}});
  return {out[0], out[1]};
}

std::vector<OpDefinition> loss_definitions() {
  return {{.name = "cross_entropy",
           .inputs = exactly(2),
           .outputs = exactly(2),
           .attributes = {attribute::integer("ignore_index", kIgnoredLabel),
                          attribute::integer("per_row", 0)},
           .infer = infer_cross_entropy,
           .gradient = Gradient(cross_entropy_gradient),
           .in_place = InPlace::never(),
           .cost = cost_per_input<4>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_cross_entropy,
           .split = split_cross_entropy},
          {.name = "mean_loss",
           .inputs = exactly(2),
           .outputs = exactly(1),
           .attributes = {attribute::integer("ignore_index", kIgnoredLabel)},
           .infer = infer_mean_loss,
           .gradient = Gradient(mean_loss_gradient),
           .in_place = InPlace::never(),
           .cost = cost_per_input<1>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_mean_loss},
          {.name = "cross_entropy_grad",
           .inputs = between(4, 5),
           .outputs = exactly(1),
           .attributes = {attribute::integer("ignore_index", kIgnoredLabel)},
           .infer = infer_cross_entropy_grad,
           .gradient = Gradient::of_decomposition(),
           .in_place = InPlace::over(1),
           .cost = cost_per_element<3>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_cross_entropy_grad,
           .decompose = decompose_cross_entropy_grad,
           .split = split_cross_entropy_grad}};
}

}  // namespace plimsoll::ops
