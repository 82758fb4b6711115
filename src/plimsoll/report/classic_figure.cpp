#include "plimsoll/report/classic_figure.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/checked.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/json.h"
#include "plimsoll/report/markup.h"

namespace plimsoll::report {
namespace {

constexpr int kTrials = 5;

Bytes persistent_bytes(const ir::Graph& graph) {
  Bytes total;
  for (const ir::Value& value : graph.values) {
    if (!ir::is_source(value.kind) || value.kind == ir::ValueKind::kInput) continue;
    total += Bytes(round_up(ir::bytes_of(value.type).value, schedule::kTensorAlignment.value));
  }
  return total;
}

class FigureMaker {
 public:
  FigureMaker(const ir::Graph& graph, const plan::PlanOptions& options, const PlanWith& plan,
              double allowed_overhead)
      : plan_(plan),
        options_(options),
        allowed_overhead_(allowed_overhead),
        persistent_(persistent_bytes(graph)) {
    figure_.model = graph.name;
    options_.compare = false;
    options_.budget.clear();
  }

  Result<ClassicFigure> run() {
    PLIMSOLL_TRY(const plan::PlannedGraph kept, plan_(options_));
    row("none", kept.summary.baseline, 0);
    row("in place", kept.summary.in_place, 0);
    row("sharing", kept.plan, 0);
    for (const char* strategy : {"drop-cheap", "sqrt"}) {
      plan::PlanOptions classic = options_;
      classic.strategy = strategy;
      PLIMSOLL_TRY(const plan::PlannedGraph planned, plan_(classic));
      row(strategy, planned.plan, overhead(planned));
    }
    return search(kept.plan.arena_bytes());
  }

 private:
  static double overhead(const plan::PlannedGraph& planned) {
    const double kept = planned.summary.no_recompute_seconds;
    return kept > 0 ? planned.plan.predicted_seconds / kept - 1 : 0;
  }

  static Bytes activations(const plan::Plan& plan) {
    return plan::bytes_by_use_at_peak(plan)[static_cast<std::size_t>(plan::Use::kActivation)];
  }

  void row(std::string name, const plan::Plan& plan, double slower) {
    row(std::move(name), plan.arena_bytes(), slower);
    figure_.rows.back().activations = activations(plan);
  }
  void row(std::string name, Bytes arena, double slower) {
    figure_.rows.push_back({std::move(name), arena - persistent_, slower, {}});
  }

  // Halves the range of feature maps, on a scale of ratios, between what is too slow and what is
  // allowed.
  Result<ClassicFigure> search(Bytes kept) {
    double high = std::log(static_cast<double>((kept - persistent_).value));
    double low = high - std::log(64.0);
    FigureRow best = figure_.rows[2];
    best.name = "auto";
    for (int trial = 0; trial < kTrials;) {
      const double middle = (low + high) / 2;
      PLIMSOLL_TRY(const auto found,
                   try_budget(Bytes(static_cast<std::int64_t>(std::exp(middle))), kTrials - trial));
      // Below the proven lower bound nothing was searched, and from there on it is known.
      if (const double bound = log_bound(); middle < bound) {
        low = bound;
        if (low >= high) break;
        continue;
      }
      ++trial;
      const bool good = found && found->overhead <= allowed_overhead_;
      (good ? high : low) = middle;
      if (good && found->feature_maps < best.feature_maps) best = *found;
    }
    figure_.rows.push_back(std::move(best));
    return std::move(figure_);
  }

  double log_bound() const {
    return bound_ > persistent_ ? std::log(static_cast<double>((bound_ - persistent_).value)) : 0;
  }

  // A plan with this many bytes of feature maps, in an even share of the time that is left; none
  // when there is none.
  Result<std::optional<FigureRow>> try_budget(Bytes feature_maps, int trials_left) {
    plan::PlanOptions one = options_;
    one.budget = std::to_string((persistent_ + feature_maps).value);
    one.deadline_seconds =
        std::max(0.05, (options_.deadline_seconds - watch_.seconds()) / trials_left);
    one.on_failure = [this](const plan::PlanFailure& failure) { bound_ = failure.lower_bound; };
    const auto planned = plan_(one);
    const bool missed = !planned && (planned.error().code == ErrorCode::kDoesNotFit ||
                                     planned.error().code == ErrorCode::kNoAnswer);
    if (missed) return std::optional<FigureRow>();
    if (!planned) return forward(planned);
    return std::optional(FigureRow{"auto", planned->plan.arena_bytes() - persistent_,
                                   overhead(*planned), activations(planned->plan)});
  }

  const PlanWith& plan_;
  plan::PlanOptions options_;
  double allowed_overhead_;
  Bytes persistent_;
  Bytes bound_;  // of the last budget that was missed; 0 while none was
  ClassicFigure figure_;
  Stopwatch watch_;
};

}  // namespace

Result<ClassicFigure> classic_figure(const ir::Graph& graph, const plan::PlanOptions& options,
                                     const PlanWith& plan, double allowed_overhead) {
  return FigureMaker(graph, options, plan, allowed_overhead).run();
}

std::string to_json(const ClassicFigure& figure) {
  nlohmann::ordered_json out{
      {"schema", 1}, {"model", figure.model}, {"figure", nlohmann::ordered_json::array()}};
  for (const FigureRow& row : figure.rows) {
    out["figure"].push_back({{"name", row.name},
                             {"feature_map_bytes", row.feature_maps.value},
                             {"overhead", row.overhead}});
    if (row.activations.value > 0) out["figure"].back()["activation_bytes"] = row.activations.value;
  }
  return json_text(out, 2);
}

std::string to_svg(const ClassicFigure& figure) {
  constexpr int kLine = 34;
  constexpr double kWidth = 420;
  std::int64_t most = 1;
  for (const FigureRow& row : figure.rows) most = std::max(most, row.feature_maps.value);
  const auto height = static_cast<int>(figure.rows.size()) * kLine + 60;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"14\">\n"
      "<rect width=\"720\" height=\"{}\" fill=\"white\"/>\n<text x=\"16\" y=\"28\" "
      "font-size=\"16\">{}: bytes of feature maps</text>\n",
      height, height, escaped(figure.model));
  int y = 48;
  for (const FigureRow& row : figure.rows) {
    const double width = std::max(
        1.0, kWidth * static_cast<double>(row.feature_maps.value) / static_cast<double>(most));
    out += fmt::format("<text x=\"16\" y=\"{}\">{}</text>\n", y + 18, row.name);
    out += fmt::format(
        "<rect x=\"110\" y=\"{}\" width=\"{:.1f}\" height=\"24\" fill=\"#31688e\"/>\n", y, width);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}, +{:.1f} % time</text>\n", 118 + width,
                       y + 18, human(row.feature_maps), 100 * row.overhead);
    y += kLine;
  }
  return out + "</svg>\n";
}

}  // namespace plimsoll::report
