#include "plimsoll/cli/plan_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/classic_figure.h"
#include "plimsoll/api/largest_batch.h"
#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/plan_files.h"
#include "plimsoll/api/plan_json.h"
#include "plimsoll/api/plan_set.h"
#include "plimsoll/api/run_files.h"
#include "plimsoll/api/tuning.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/search_progress.h"

namespace plimsoll::cli {
namespace {

void row(const char* what, Bytes bytes, const char* note) {
  std::printf("  %-22s %18s  %10s  %s\n", what, grouped(bytes.value).c_str(), human(bytes).c_str(),
              note);
}

void print(const api::PlannedGraph& planned) {
  const plan::Plan& plan = planned.plan;
  const api::PlanSummary& summary = planned.summary;
  std::printf("%s: %zu steps, %zu buffers, planned in %.3f s\n", plan.graph.name.c_str(),
              plan.steps.size(), plan.buffers.size(), summary.plan_seconds);
  row("none", summary.baseline, "every result its own memory");
  row("in place", summary.in_place, "results over inputs that die");
  // left out where only the answer counts, as in a search for the largest batch
  if (summary.both.value > 0) {
    row("sharing", summary.shared, "greedy best-fit by size");
    row("in place + sharing", summary.both, "greedy best-fit by size");
  }
  row("packed", summary.keep_all, "near-optimal offsets");
  if (plan.budget.value > 0) {
    row("budget", plan.budget, "");
    row("within the budget", plan.arena_bytes(), "");
    // several streams can be faster
    const double slower = plan.predicted_seconds / summary.keep_all_seconds - 1;
    const std::vector<std::string> lossy = plan::lossy_forms_of(plan);
    const std::string form =
        lossy.empty() ? "" : fmt::format(" (lossy: {})", fmt::join(lossy, ", "));
    std::printf(
        "  predicted %.4g s a step, %.2f %% %s than keeping everything%s; %lld recomputed, %s "
        "swapped, %s encoded%s\n",
        plan.predicted_seconds, 100 * std::abs(slower), slower < 0 ? "faster" : "slower",
        slower < 0 ? " on one stream" : "", static_cast<long long>(summary.counts.recomputed),
        human(summary.counts.copied_out).c_str(), human(summary.counts.encoded).c_str(),
        form.c_str());
    if (summary.bound_seconds > 0) {
      std::printf("  at most %.2f %% slower than any plan possible for this order\n",
                  100 * (plan.predicted_seconds / summary.bound_seconds - 1));
    }
  }
  row("load", plan.proof.load, "most that is alive at any step");
  if (plan.proof.lower_bound > plan.proof.load)
    row("bound", plan.proof.lower_bound, "most that streams can have in use at once");
  const Bytes bound = std::max(plan.proof.load, plan.proof.lower_bound);
  const double gap = bound.value > 0
                         ? 100.0 * static_cast<double>((plan.arena_bytes() - bound).value) /
                               static_cast<double>(bound.value)
                         : 0;
  std::printf("  arena is %.3f %% above the %s%s\n", gap,
              bound > plan.proof.load ? "bound" : "load",
              plan.proof.optimal ? " (proven optimal)" : "");
  std::printf("at the peak:\n");
  const std::vector<Bytes> by_use = plan::bytes_by_use_at_peak(plan);
  for (std::size_t use = 0; use < by_use.size(); ++use)
    row(std::string(plan::name(static_cast<plan::Use>(use))).c_str(), by_use[use], "");
}

void print_curve(const std::vector<api::PlannedGraph>& curve) {
  std::printf("%18s  %10s  %10s  %9s  %10s  %10s  %10s\n", "arena bytes", "", "seconds", "slower",
              "recomputed", "swapped", "encoded");
  for (const api::PlannedGraph& point : curve) {
    const plan::Plan& plan = point.plan;
    std::printf("%18s  %10s  %10.4g  %7.2f %%  %10lld  %10s  %10s\n",
                grouped(plan.arena_bytes().value).c_str(), human(plan.arena_bytes()).c_str(),
                plan.predicted_seconds,
                100 * (plan.predicted_seconds / point.summary.keep_all_seconds - 1),
                static_cast<long long>(point.summary.counts.recomputed),
                human(point.summary.counts.copied_out).c_str(),
                human(point.summary.counts.encoded).c_str());
  }
}

Status sweep(const PlanModelOptions& options, api::PlanOptions how) {
  PLIMSOLL_TRY(const api::PreparedModel prepared,
               api::prepare_model(options.request, options.planning.device));
  PLIMSOLL_TRY(const std::vector<api::PlannedGraph> curve,
               api::sweep_model(prepared, options.request, how));
  how.on_better = {};  // wipes the line
  if (!options.output.empty())
    PLIMSOLL_RETURN_IF_ERROR(write_file(options.output, api::to_json(curve) + "\n"));
  if (options.json) {
    std::printf("%s\n", api::to_json(curve).c_str());
  } else {
    print_curve(curve);
  }
  return {};
}

Status max_batch(const PlanModelOptions& options, api::PlanOptions how) {
  PLIMSOLL_TRY(const api::LargestBatch largest,
               api::largest_batch(options.request, options.planning.device, how));
  how.on_better = {};  // wipes the line
  if (!options.output.empty())
    PLIMSOLL_RETURN_IF_ERROR(write_file(options.output, plan::to_json(largest.planned.plan)));
  if (options.json) {
    std::printf("%s\n", api::to_json(largest.planned, largest.batch).c_str());
  } else {
    std::printf("largest batch %lld: ", static_cast<long long>(largest.batch));
    print(largest.planned);
  }
  return {};
}

Status figure(const PlanModelOptions& options, api::PlanOptions how) {
  PLIMSOLL_TRY(const api::PreparedModel prepared,
               api::prepare_model(options.request, options.planning.device));
  PLIMSOLL_TRY(const api::ClassicFigure drawn,
               api::classic_figure(prepared, options.request, how, options.slower_percent / 100));
  how.on_better = {};  // wipes the line
  if (!options.output.empty())
    PLIMSOLL_RETURN_IF_ERROR(write_file(options.output, api::to_svg(drawn)));
  if (options.json) {
    std::printf("%s\n", api::to_json(drawn).c_str());
    return {};
  }
  std::printf("%s: feature maps\n", drawn.model.c_str());
  for (const api::FigureRow& line : drawn.rows) {
    const std::string activations =
        line.activations.value > 0 ? ", of it " + human(line.activations) + " activations" : "";
    std::printf("  %-12s %18s  %10s  +%.1f %% time%s\n", line.name.c_str(),
                grouped(line.feature_maps.value).c_str(), human(line.feature_maps).c_str(),
                100 * line.overhead, activations.c_str());
  }
  return {};
}

Status plan_sizes(const PlanModelOptions& options, api::PlanOptions how) {
  PLIMSOLL_TRY(const api::SizeRange sizes, api::parse_sizes(options.sizes));
  PLIMSOLL_TRY(const std::vector<api::PlanSetMember> plans,
               api::plan_set_for(options.request, options.planning.device, how, sizes));
  how.on_better = {};  // wipes the line
  if (!options.output.empty())
    PLIMSOLL_RETURN_IF_ERROR(api::write_plan_set(options.output, sizes, plans));
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!options.json)
    std::printf("%8s %18s %18s\n", sizes.option.c_str(), "arena bytes", "load bytes");
  for (const api::PlanSetMember& member : plans) {
    const plan::Plan& plan = member.plan;
    if (options.json) {
      rows.push_back({{"size", member.size},
                      {"arena_bytes", plan.arena_bytes().value},
                      {"load_bytes", plan.proof.load.value},
                      {"shared", member.shared}});
    } else {
      std::printf("%8lld %18s %18s%s\n", static_cast<long long>(member.size),
                  grouped(plan.arena_bytes().value).c_str(), grouped(plan.proof.load.value).c_str(),
                  member.shared ? "" : "  offsets of its own");
    }
  }
  if (options.json)
    std::printf(
        "%s\n",
        json_text(nlohmann::ordered_json{{"schema", 1}, {"option", sizes.option}, {"sizes", rows}},
                  2)
            .c_str());
  return {};
}

Result<api::PlannedGraph> planned_or_tuned(const PlanModelOptions& options,
                                           const api::PlanOptions& how,
                                           api::PreparedModel& prepared) {
  if (options.planning.tune == 0) return api::plan_model(prepared, options.request, how);
  api::RunOptions run;
  run.threads = options.request.threads;
  run.seed = options.request.seed;
  run.swap_file = options.planning.swap_file;
  run.on_start = api::load_sources(prepared.model, {});
  PLIMSOLL_TRY(api::Tuned tuned,
               api::tune_model(prepared, options.request, how, run, options.planning.tune));
  return std::move(tuned.planned);
}

Status plan_once(const PlanModelOptions& options, api::PlanOptions how) {
  PLIMSOLL_TRY(api::PreparedModel prepared,
               api::prepare_model(options.request, options.planning.device, measuring_operators));
  progress_line("");
  if (options.explain) {
    how.on_better = {};
    const ir::Graph& graph = prepared.model.graph;
    const std::string walk = plan::to_string(graph, plan::walk_tags(graph));
    std::printf("%s", options.json ? (json_text(nlohmann::ordered_json{
                                          {"schema", 1}, {"model", graph.name}, {"walk", walk}}) +
                                      "\n")
                                         .c_str()
                                   : walk.c_str());
    return {};
  }
  PLIMSOLL_TRY(const api::PlannedGraph planned, planned_or_tuned(options, how, prepared));
  how.on_better = {};  // wipes the line
  if (!options.output.empty())
    PLIMSOLL_RETURN_IF_ERROR(write_file(options.output, plan::to_json(planned.plan)));
  if (options.json) {
    std::printf("%s\n", api::to_json(planned).c_str());
  } else {
    print(planned);
    std::printf("times of '%s': %lld operators measured, %lld estimated\n",
                prepared.profile.name.c_str(),
                static_cast<long long>(planned.summary.measured_operators),
                static_cast<long long>(planned.summary.estimated_operators));
  }
  return {};
}

}  // namespace

Status plan_model(const PlanModelOptions& options) {
  PLIMSOLL_TRY(api::PlanOptions how, plan_options(options.planning));
  how.strategy = options.strategy;
  how.stop = stop_on_interrupt();
  how.on_better = progress_on_terminal(how.deadline_seconds);
  if (options.json) {
    how.on_failure = [](const api::PlanFailure& failure) {
      std::printf("%s\n", api::to_json(failure).c_str());
    };
  }
  if (!options.sizes.empty()) return plan_sizes(options, std::move(how));
  if (options.figure) return figure(options, std::move(how));
  if (options.max_batch) return max_batch(options, std::move(how));
  if (options.sweep) return sweep(options, std::move(how));
  return plan_once(options, std::move(how));
}

}  // namespace plimsoll::cli
