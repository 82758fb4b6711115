#include "plimsoll/cli/plan_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/plan_weights.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/cli/search_progress.h"

namespace plimsoll::cli {
namespace {

void row(const char* what, Bytes bytes, const char* note) {
  std::printf("  %-22s %18s  %10s  %s\n", what, grouped(bytes.value).c_str(), human(bytes).c_str(),
              note);
}

void print_budget(const api::PlanReport& plan) {
  if (plan.slowdown) {
    row("fast enough", plan.arena,
        fmt::format("the least found for at most {:.3g} % more time", 100 * *plan.slowdown)
            .c_str());
  } else {
    row("budget", plan.budget, "");
    row("within the budget", plan.arena, "");
  }
  // several streams can be faster
  const double slower = plan.predicted_seconds / plan.no_recompute_seconds - 1;
  const std::string form =
      plan.lossy.empty() ? "" : fmt::format(" (lossy: {})", fmt::join(plan.lossy, ", "));
  std::printf(
      "  predicted %s a step, %.2f %% %s than the no-recompute plan%s; %lld recomputed, %s "
      "swapped, %s encoded%s\n",
      human_seconds(plan.predicted_seconds).c_str(), 100 * std::abs(slower),
      slower < 0 ? "faster" : "slower", slower < 0 ? " on one stream" : "",
      static_cast<long long>(plan.recomputed), human(plan.swapped).c_str(),
      human(plan.encoded).c_str(), form.c_str());
  if (plan.split_operators > 0)
    std::printf("  %lld operators in up to %lld parts\n",
                static_cast<long long>(plan.split_operators),
                static_cast<long long>(plan.split_parts));
  if (plan.memory_bound && !plan.limiting.empty()) {
    std::printf("  no plan needs less than %s: %s must be there at once%s\n",
                human(*plan.memory_bound).c_str(),
                named_bytes(plan.limiting, plan.limiting_bytes).c_str(),
                beside(*plan.memory_bound, plan.limiting_bytes).c_str());
  }
  if (plan.bound_seconds > 0 && !plan.interrupted) {
    std::printf("  at most %.2f %% slower than any plan possible for this order\n",
                100 * (plan.predicted_seconds / plan.bound_seconds - 1));
  }
}

void print_placement(const api::PlacementSummary& placed) {
  const auto saved = [&](double seconds) {
    return placed.home_seconds > 0 ? 100 * (1 - seconds / placed.home_seconds) : 0;
  };
  std::printf("memories (%s): predicted %s a step, %.1f %% less than all in device memory",
              std::string(name(placed.choice)).c_str(), human_seconds(placed.seconds).c_str(),
              saved(placed.seconds));
  if (placed.greedy_seconds > 0 && placed.choice == api::PlacementChoice::kSearch)
    std::printf(" (greedy: %.1f %% less)", saved(placed.greedy_seconds));
  std::printf("\n");
  for (const api::MemorySummary& memory : placed.memories) {
    std::printf("  %-22s %18s  %10s  of %s; %lld windows, %s copied in, %s out\n",
                memory.name.c_str(), grouped(memory.bytes.value).c_str(),
                human(memory.bytes).c_str(), human(memory.capacity).c_str(),
                static_cast<long long>(memory.windows), human(memory.copied_in).c_str(),
                human(memory.copied_out).c_str());
  }
}

void print(const api::PlanReport& plan) {
  std::printf("%s: %lld steps, %lld buffers, planned in %.3f s\n", plan.model.c_str(),
              static_cast<long long>(plan.steps), static_cast<long long>(plan.buffers),
              plan.plan_seconds);
  row("none", plan.baseline, "every result its own memory");
  row("in place", plan.in_place, "results over inputs that die");
  // left out where only the answer counts, as in a search for the largest batch
  if (plan.both.value > 0) {
    row("sharing", plan.shared, "greedy best-fit by size");
    row("in place + sharing", plan.both, "greedy best-fit by size");
  }
  row("packed", plan.no_recompute, "near-optimal offsets");
  if (plan.budget.value > 0) print_budget(plan);
  row("peak live", plan.live, "most that is alive at any step");
  if (plan.lower_bound > plan.live)
    row("bound", plan.lower_bound, "most that streams can have in use at once");
  const Bytes bound = std::max(plan.live, plan.lower_bound);
  const double gap = bound.value > 0 ? 100.0 * static_cast<double>((plan.arena - bound).value) /
                                           static_cast<double>(bound.value)
                                     : 0;
  std::printf("  arena is %.3f %% above the %s%s\n", gap,
              bound > plan.live ? "bound" : "peak live bytes",
              plan.optimal && !plan.interrupted ? " (proven optimal)" : "");
  if (plan.ranks > 1) {
    std::printf(
        "  %lld ranks: %lld messages a step, %s leave a rank; %s in them, %s not hidden "
        "behind %s a step\n",
        static_cast<long long>(plan.ranks), static_cast<long long>(plan.messages),
        human(plan.wire).c_str(), human_seconds(plan.communication_seconds).c_str(),
        human_seconds(plan.exposed_seconds).c_str(), human_seconds(plan.predicted_seconds).c_str());
    if (!plan.sharded.empty())
      std::printf("  each rank keeps a part of: %s, sums of gradients\n",
                  fmt::format("{}", fmt::join(plan.sharded, ", ")).c_str());
  }
  if (plan.interrupted) std::printf("  interrupted: this is the best plan found until then\n");
  if (const auto& kept = plan.encoded_weights; kept.tensors > 0) {
    std::string forms;
    for (const auto& [form, tensors] : kept.by_form)
      forms += fmt::format("{}{} as {}", forms.empty() ? "" : ", ", tensors, form);
    std::printf("  %lld weights stay encoded (%s): %s instead of %s\n",
                static_cast<long long>(kept.tensors), forms.c_str(), human(kept.encoded).c_str(),
                human(kept.decoded).c_str());
  }
  std::printf("at the peak:\n");
  for (const auto& [use, bytes] : plan.by_use) row(use.c_str(), bytes, "");
  if (plan.placement) print_placement(*plan.placement);
}

void print_curve(const std::vector<api::PlanReport>& curve) {
  std::printf("%18s  %10s  %10s  %9s  %10s  %10s  %10s\n", "arena bytes", "", "seconds", "slower",
              "recomputed", "swapped", "encoded");
  for (const api::PlanReport& plan : curve) {
    std::printf("%18s  %10s  %10.4g  %7.2f %%  %10lld  %10s  %10s\n",
                grouped(plan.arena.value).c_str(), human(plan.arena).c_str(),
                plan.predicted_seconds,
                100 * (plan.predicted_seconds / plan.no_recompute_seconds - 1),
                static_cast<long long>(plan.recomputed), human(plan.swapped).c_str(),
                human(plan.encoded).c_str());
  }
  if (!curve.empty() && curve.front().interrupted)
    std::printf("interrupted: this is the curve found until then\n");
}

Status sweep(PlanModelOptions& options) {
  PLIMSOLL_TRY(const std::vector<api::PlanReport> curve, api::plan_sweep(options.job));
  options.job.on_better = {};  // wipes the line
  if (options.json) {
    std::printf("%s\n", api::to_json(curve).c_str());
  } else {
    print_curve(curve);
  }
  return {};
}

// How to run what was planned: from the file, or by planning it again.
void print_how_to_run(const PlanModelOptions& options, const Command& command,
                      const std::string& batch = "") {
  const std::string& output = options.job.output;
  const std::string& device = options.job.planning.device;
  if (device != "cpu" && device != api::kMeasured) return;  // a profile only plans
  if (!options.job.checkpointing.empty() && output.empty()) return;
  std::vector<std::pair<std::string, std::string>> instead{{"--deadline", ""}};
  if (!batch.empty()) instead.emplace_back("--batch", batch);
  const bool kept = !output.empty() && !output.starts_with("/dev/");
  const std::string& model = options.job.model.model;
  const bool beside = !kept || !model.ends_with(".onnx") || api::lies_beside(model, output);
  const std::string& given = options.job.model.weights;
  const std::string weights = given.empty() && !beside ? model : given;
  const int ranks = options.job.ranks.ranks;
  // Ranks share the cores of a machine; the plan is for the threads that it was made with.
  const std::string as_ranks = ranks > 1 ? fmt::format(" --ranks {} --threads {}", ranks,
                                                       resolve_threads(options.job.model.threads))
                                         : "";
  const std::string from_file =
      fmt::format("plimsoll run {}{}{}", shell_word(output),
                  weights.empty() ? "" : " --weights " + shell_word(weights), as_ranks);
  std::printf("run it: %s\n", kept ? from_file.c_str() : command.words_for("run", instead).c_str());
}

void print_next_batch(const api::PlanAnswer& largest) {
  const auto next = static_cast<long long>(largest.batch + 1);
  if (largest.next_batch == "proven") {
    std::printf("%lld is proven not to fit\n", next);
  } else if (largest.next_batch == "not_found") {
    std::printf("no plan for %lld was found; a longer --deadline may find one\n", next);
  } else {
    const bool cut = largest.next_batch == "deadline";
    const std::string range = !largest.failed_batch ? fmt::format("{} and above", next)
                              : *largest.failed_batch - 1 > next
                                  ? fmt::format("{} to {}", next, *largest.failed_batch - 1)
                                  : std::to_string(next);
    std::printf("the %s cut the search: %s %s not tried; %s\n", cut ? "deadline" : "interrupt",
                range.c_str(), range == std::to_string(next) ? "was" : "were",
                cut ? "give a longer --deadline" : "this is the best so far");
  }
}

Status max_batch(PlanModelOptions& options, Command& command) {
  PLIMSOLL_TRY(const api::PlanAnswer largest, api::plan_largest_batch(options.job));
  options.job.on_better = {};  // wipes the line
  if (options.json) {
    std::printf("%s\n", api::to_json(largest).c_str());
    return {};
  }
  std::printf("largest batch %lld: ", static_cast<long long>(largest.batch));
  const double speed = largest.samples_per_second();
  if (speed > 0)
    std::printf("%s samples a second predicted; ",
                speed < 1000 ? fmt::format("{:.3g}", speed).c_str()
                             : grouped(static_cast<std::int64_t>(speed)).c_str());
  print_next_batch(largest);
  print(largest.plan);
  print_how_to_run(options, command, std::to_string(largest.batch));
  return {};
}

Status figure(PlanModelOptions& options) {
  PLIMSOLL_TRY(const report::ClassicFigure drawn,
               api::plan_figure(options.job, options.slower_percent / 100));
  options.job.on_better = {};  // wipes the line
  if (options.json) {
    std::printf("%s\n", report::to_json(drawn).c_str());
    return {};
  }
  std::printf("%s: feature maps\n", drawn.model.c_str());
  for (const report::FigureRow& line : drawn.rows) {
    const std::string activations =
        line.activations.value > 0 ? ", of it " + human(line.activations) + " activations" : "";
    std::printf("  %-12s %18s  %10s  +%.1f %% time%s\n", line.name.c_str(),
                grouped(line.feature_maps.value).c_str(), human(line.feature_maps).c_str(),
                100 * line.overhead, activations.c_str());
  }
  return {};
}

// A number of one option, a list of several.
nlohmann::ordered_json size_json(const std::vector<std::int64_t>& sizes) {
  if (sizes.size() == 1) return sizes.front();
  return sizes;
}

const char* place_note(const api::PlannedSize& plan) {
  if (plan.shared) return "";
  return plan.places == "near" ? "  other steps, in free places" : "  offsets of its own";
}

Status plan_sizes(PlanModelOptions& options) {
  PLIMSOLL_TRY(const api::SizeGrid grid, api::parse_sizes(options.sizes));
  PLIMSOLL_TRY(const std::vector<api::PlannedSize> plans, api::plan_sizes(options.job, grid));
  options.job.on_better = {};  // wipes the line
  if (!options.json)
    std::printf("%8s %18s %18s\n", grid.options().c_str(), "arena bytes", "peak live bytes");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const api::PlannedSize& plan : plans) {
    if (options.json) {
      rows.push_back({{"size", size_json(plan.sizes)},
                      {"arena_bytes", plan.arena.value},
                      {"load_bytes", plan.live.value},
                      {"shared", plan.shared},
                      {"places", plan.places}});
    } else {
      std::printf("%8s %18s %18s%s\n", fmt::format("{}", fmt::join(plan.sizes, " x ")).c_str(),
                  grouped(plan.arena.value).c_str(), grouped(plan.live.value).c_str(),
                  place_note(plan));
    }
  }
  if (options.json)
    std::printf(
        "%s\n",
        json_text(
            nlohmann::ordered_json{{"schema", 1}, {"option", grid.options()}, {"sizes", rows}}, 2)
            .c_str());
  return {};
}

Status explain(PlanModelOptions& options) {
  options.job.on_better = {};
  PLIMSOLL_TRY(const api::TagWalk walk, api::walk_tags_of(options.job));
  progress_line("");
  const nlohmann::ordered_json out{{"schema", 1}, {"model", walk.model}, {"walk", walk.text}};
  std::printf("%s", options.json ? (json_text(out) + "\n").c_str() : walk.text.c_str());
  return {};
}

Status plan_once(PlanModelOptions& options, const Command& command) {
  PLIMSOLL_TRY(const api::PlanAnswer answer, api::plan_once(options.job));
  options.job.on_better = {};  // wipes the line
  progress_line("");
  const api::PlanReport& plan = answer.plan;
  if (options.json) {
    const auto times = [&](nlohmann::ordered_json& out) {
      out["profile"] = {{"name", answer.profile}, {"note", answer.profile_note}};
    };
    std::printf("%s\n", api::to_json(plan, times).c_str());
    return {};
  }
  print(plan);
  std::printf("times of '%s': %lld operators measured, %lld estimated\n", answer.profile.c_str(),
              static_cast<long long>(plan.measured_operators),
              static_cast<long long>(plan.estimated_operators));
  if (plan.estimated_operators > 0) std::printf("  %s\n", answer.profile_note.c_str());
  if (const api::LayoutConversions& some = plan.conversions; some.count > 0) {
    std::printf(
        "%lld conversions between layouts: %s, %.3g ms a step (%.1f %% of its computations)\n",
        static_cast<long long>(some.count), human(some.bytes).c_str(), 1e3 * some.seconds,
        100 * some.share);
  }
  print_how_to_run(options, command);
  return {};
}

// Each of these asks for another answer; what goes with none of them is refused, not ignored.
Status check_question(const PlanModelOptions& options, const Command& command) {
  std::vector<std::string> asked;
  for (const char* option :
       {"--sweep", "--max-batch", "--figure", "--sizes", "--explain", "--checkpointing"}) {
    if (command.has(option)) asked.emplace_back(option);
  }
  const std::string& slowdown = options.job.planning.slowdown;
  if (!slowdown.empty() && !asked.empty())
    return fail(ErrorCode::kUsage,
                "--slowdown {} asks for one plan: leave out --sweep, --figure, --max-batch, "
                "--sizes, --explain and --checkpointing",
                slowdown);
  if (asked.size() > 1)
    return fail(ErrorCode::kUsage, "{} and {}: each asks for another answer; give one", asked[0],
                asked[1]);
  // --max-batch and --checkpointing keep to a budget.
  const bool budgeted = asked.empty() || options.max_batch || !options.job.checkpointing.empty();
  if (command.has("--budget") && !budgeted)
    return fail(ErrorCode::kUsage, "{} does not keep to a budget{}; leave out --budget {}",
                asked.front(), options.sweep ? " but plans for all of them" : "",
                options.job.planning.budget);
  if (options.explain && !options.job.output.empty())
    return fail(ErrorCode::kUsage, "--explain prints a text and writes no plan; leave out -o {}",
                options.job.output);
  if (options.max_batch && command.has("--batch"))
    return fail(ErrorCode::kUsage, "--max-batch finds the batch; leave out --batch {}",
                *options.job.model.sizes.batch);
  if (command.has("--slower") && !options.figure)
    return fail(ErrorCode::kUsage, "--slower is for --figure; --slowdown {:g}% limits a plan",
                options.slower_percent);
  if (options.job.ranks.ranks > 1 && (options.max_batch || !options.sizes.empty()))
    return fail(ErrorCode::kUsage, "--ranks: not with --max-batch or --sizes yet");
  return {};
}

}  // namespace

Status plan_model(PlanModelOptions options, Command& command) {
  PLIMSOLL_RETURN_IF_ERROR(check_question(options, command));
  PLIMSOLL_TRY(const double deadline, parse_seconds(options.job.planning.deadline));
  options.job.stop = stop_on_interrupt();
  options.job.on_better = progress_on_terminal(deadline);
  options.job.on_measuring = measuring_operators;
  if (options.json)
    options.job.on_failure = [&command](const std::string& json) { command.answer(json); };
  if (!options.sizes.empty()) return plan_sizes(options);
  if (options.figure) return figure(options);
  if (options.max_batch) return max_batch(options, command);
  if (options.sweep) return sweep(options);
  return options.explain ? explain(options) : plan_once(options, command);
}

}  // namespace plimsoll::cli
