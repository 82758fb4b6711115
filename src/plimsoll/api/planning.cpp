#include "plimsoll/api/planning.h"

#include <nlohmann/json.hpp>

#include "plimsoll/api/file_kind.h"
#include "plimsoll/api/largest_batch.h"
#include "plimsoll/api/plan_weights.h"
#include "plimsoll/api/run_device.h"
#include "plimsoll/base/file.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/plan/plan_set_files.h"
#include "plimsoll/plan/tag_walk.h"
#include "plimsoll/profile/find_profile.h"
#include "plimsoll/schedule/replay_schedule.h"

namespace plimsoll::api {
namespace {

Result<PlanOptions> options_of(const PlanJob& job) {
  PLIMSOLL_TRY(PlanOptions out, plan_options(job.planning));
  out.strategy = job.checkpointing;
  out.stop = job.stop;
  if (job.on_better) {
    out.on_better = [tell = job.on_better](const schedule::FitProgress& better) {
      tell(better.seconds, better.peak_bytes);
    };
  }
  if (job.on_failure) {
    out.on_failure = [tell = job.on_failure](const PlanFailure& failure) {
      tell(to_json(failure));
    };
  }
  return out;
}

Result<Pipeline> prepared_for(const PlanJob& job) {
  Pipeline out;
  out.request = job.model;
  out.device = job.planning.device;
  out.on_measuring = job.on_measuring;
  PLIMSOLL_TRY(out.planning, options_of(job));
  PLIMSOLL_TRY(out.ranks, imagine_ranks(job.ranks));
  PLIMSOLL_RETURN_IF_ERROR(advance(out, Stage::kPrepared));
  out.running.threads = job.model.threads;
  out.running.seed = job.model.seed;
  out.running.swap_file = job.planning.swap_file;
  return out;
}

// What the file of a plan says of weights that came from a model file; `weights` where they are at
// hand, else the model is loaded once more.
Result<std::optional<plan::WeightsOrigin>> origin_for(
    const PlanJob& job, const ModelRequest& model, const ir::Graph& graph,
    const store::WeightSource* weights = nullptr) {
  std::optional<plan::WeightsOrigin> out;
  if (job.output.empty() || !takes_weights_from_file(graph)) return out;
  LoadedModel again;
  if (weights == nullptr) {
    ModelRequest quiet = model;
    quiet.quiet = true;
    PLIMSOLL_TRY(again, load_forward(quiet));
    weights = &again.weights;
  }
  PLIMSOLL_TRY(out, origin_of_weights(model, *weights, job.output));
  return out;
}

Result<CheckReport> check_schedule(const std::string& name, std::string_view text) {
  const auto file = schedule::read_schedule(text);
  if (!file) return forward(file, name);
  schedule::ScheduleReplay replay = schedule::replay_schedule(*file);
  return CheckReport{replay.peak, std::move(replay.problems)};
}

bool was_stopped(const PlanJob& job) {
  return job.stop != nullptr && job.stop->load();
}

Status write_to(const std::string& file, const std::string& content) {
  return file.empty() ? Status{} : write_file(file, content);
}

}  // namespace

Result<PlanAnswer> plan_once(const PlanJob& job) {
  if (job.ranks.ranks > 1 && job.planning.tune > 0)
    return fail(ErrorCode::kUsage, "--tune: runs plans, and --ranks of `plan` are on paper");
  if (job.planning.tune > 0) PLIMSOLL_RETURN_IF_ERROR(require_runnable(job.planning.device));
  PLIMSOLL_TRY(Pipeline p, prepared_for(job));
  if (job.planning.tune == 0) {
    PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPlanned));
  } else {
    PLIMSOLL_TRY(profile::Tuned tuned, tune_model(p, job.planning.tune));
    p.planned = std::move(tuned.planned);
  }
  PLIMSOLL_TRY(p.planned.plan.weights,
               origin_for(job, job.model, p.planned.plan.graph, &p.model.weights));
  PLIMSOLL_RETURN_IF_ERROR(write_to(job.output, plan::to_json(p.planned.plan)));
  PlanAnswer out;
  out.plan = report_of(p.planned);
  out.plan.interrupted = was_stopped(job);
  out.profile = p.profile.name;
  out.profile_note = p.profile.note;
  return out;
}

Result<PlanAnswer> plan_largest_batch(const PlanJob& job) {
  PLIMSOLL_TRY(const PlanOptions options, options_of(job));
  PLIMSOLL_TRY(LargestBatch largest, largest_batch(job.model, job.planning.device, options));
  ModelRequest at_batch = job.model;
  at_batch.sizes.batch = largest.batch;
  plan::Plan& plan = largest.planned.plan;
  PLIMSOLL_TRY(plan.weights, origin_for(job, at_batch, plan.graph));
  PLIMSOLL_RETURN_IF_ERROR(write_to(job.output, plan::to_json(largest.planned.plan)));
  PlanAnswer out;
  out.plan = report_of(largest.planned);
  out.plan.interrupted = was_stopped(job);
  out.batch = largest.batch;
  out.next_batch = name(largest.next);
  out.failed_batch = largest.failed;
  return out;
}

std::string to_json(const PlanAnswer& largest) {
  return to_json(largest.plan, [&](nlohmann::ordered_json& out) {
    out["batch"] = largest.batch;
    out["batch_status"] = largest.next_batch;
    if (largest.failed_batch) out["failed_batch"] = *largest.failed_batch;
    out["samples_per_second"] = largest.samples_per_second();
  });
}

Result<std::vector<PlanReport>> plan_sweep(const PlanJob& job) {
  PLIMSOLL_TRY(Pipeline p, prepared_for(job));
  PLIMSOLL_TRY(const std::vector<PlannedGraph> curve, sweep_model(p, p.planning));
  std::vector<PlanReport> out = reports_of(curve);
  for (PlanReport& point : out) point.interrupted = was_stopped(job);
  PLIMSOLL_RETURN_IF_ERROR(write_to(job.output, to_json(out) + "\n"));
  return out;
}

Result<report::ClassicFigure> plan_figure(const PlanJob& job, double allowed_overhead) {
  PLIMSOLL_TRY(Pipeline p, prepared_for(job));
  PLIMSOLL_TRY(report::ClassicFigure out, figure_of(p, p.planning, allowed_overhead));
  PLIMSOLL_RETURN_IF_ERROR(write_to(job.output, report::to_svg(out)));
  return out;
}

Result<report::ClassicFigure> figure_of(Pipeline& prepared, const PlanOptions& options,
                                        double allowed_overhead) {
  const auto plan = [&](const PlanOptions& how) { return plan_model(prepared, how); };
  return report::classic_figure(prepared.model.graph, options, plan, allowed_overhead);
}

Result<std::vector<PlannedSize>> plan_sizes(const PlanJob& job, const SizeGrid& grid) {
  PLIMSOLL_TRY(const PlanOptions options, options_of(job));
  const auto profile = profile::find_profile(job.planning.device);
  if (options.placement || (profile && !profile->memories.empty()))
    return fail(ErrorCode::kUsage,
                "--sizes: a plan set is for devices with one memory; plan '{}' size by size",
                job.planning.device);
  PLIMSOLL_TRY(std::vector<PlanSetMember> plans,
               plan_set_for(job.model, job.planning.device, options, grid));
  PLIMSOLL_TRY(const auto origin,
               origin_for(job, at_sizes(job.model, grid, grid.largest()), plans.back().plan.graph));
  for (PlanSetMember& member : plans) {
    member.plan.weights = origin;
    for (std::size_t r = 0; origin && r < member.sizes.size(); ++r) {
      auto& size =
          grid.ranges[r].option == "batch" ? member.plan.weights->batch : member.plan.weights->seq;
      size = member.sizes[r];
    }
  }
  if (!job.output.empty()) PLIMSOLL_RETURN_IF_ERROR(plan::write_plan_set(job.output, grid, plans));
  std::vector<PlannedSize> out;
  for (const PlanSetMember& member : plans) {
    out.push_back({member.sizes, member.plan.arena_bytes(), member.plan.proof.load, member.shared(),
                   plan::name(member.places)});
  }
  return out;
}

Result<TagWalk> walk_tags_of(const PlanJob& job) {
  PLIMSOLL_TRY(const Pipeline p, prepared_for(job));
  const ir::Graph& graph = p.model.graph;
  return TagWalk{graph.name, plan::to_string(graph, plan::walk_tags(graph))};
}

Result<CheckReport> check_model_or_plan(const ModelRequest& model, const PlanRequest& planning) {
  Pipeline p;
  if (is_read_as_plan(model.model)) {
    PLIMSOLL_TRY(const MappedFile file, MappedFile::open(model.model));
    if (schedule::looks_like_schedule(file.text())) return check_schedule(model.model, file.text());
    PLIMSOLL_TRY(p.planned.plan, read_plan(model.model, model.sizes));
  } else {
    p.request = model;
    p.device = planning.device;
    p.measure = !planning.budget.empty() || !planning.slowdown.empty();
    PLIMSOLL_TRY(p.planning, plan_options(planning));
    PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPlanned));
  }
  plan::PlanCheck check = plan::check_plan(p.planned.plan);
  // What a run takes, as `plan` and `run` say it; a plan that touches more has a problem.
  return CheckReport{std::max(check.peak_bytes, p.planned.plan.arena_bytes()),
                     std::move(check.problems)};
}

}  // namespace plimsoll::api
