#include "plimsoll/runtime/run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "plimsoll/base/check.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/machine_memory.h"
#include "plimsoll/base/random.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/evaluation/array.h"
#include "plimsoll/runtime/initial_content.h"
#include "plimsoll/runtime/nan_finder.h"
#include "plimsoll/runtime/on_demand.h"
#include "plimsoll/runtime/outside_bytes.h"
#include "plimsoll/runtime/paged.h"
#include "plimsoll/runtime/planned.h"
#include "plimsoll/runtime/planned_set.h"

namespace plimsoll::runtime {
namespace {

Status fill_constants(Executor& executor) {
  for (const ir::Constant& constant : executor.graph().constants) {
    if (constant.data.empty()) continue;
    PLIMSOLL_RETURN_IF_ERROR(
        executor.write(constant.value, std::as_bytes(std::span(constant.data))));
  }
  return {};
}

// This rank's part of weights that no rank has whole: the numbers that they would have there.
Status fill_part(Executor& executor, const ops::ShardedState& state, std::uint64_t seed, int rank) {
  const ir::Value& part = executor.graph().value(state.value);
  const std::int64_t element = ir::bits(part.type.dtype) / 8;
  const std::int64_t begin = state.part * rank;
  return executor.write(state.value, [&](std::span<std::byte> memory) -> Status {
    std::fill(memory.begin(), memory.end(), std::byte{0});
    for (const ops::ShardedState::Member& member : state.members) {
      const std::int64_t from = std::max(begin, member.first);
      const std::int64_t to = std::min(begin + state.part, member.first + member.count);
      if (from >= to) continue;
      ir::Value whole;
      whole.name = member.name;
      whole.type = {part.type.dtype, member.shape, {}};
      whole.kind = ir::ValueKind::kWeight;
      whole.init = member.init;
      fill_elements(whole, seed, member.begin + from - member.first,
                    memory.subspan(static_cast<std::size_t>((from - begin) * element),
                                   static_cast<std::size_t>((to - from) * element)));
    }
    return {};
  });
}

Status fill_states(Executor& executor, const RunOptions& options) {
  const ir::Graph& graph = executor.graph();
  std::unordered_set<std::string> later;
  if (options.is_loaded) later = options.is_loaded(graph);
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (!ir::is_persistent(value.kind) || value.init.kind == ir::Init::Kind::kFile ||
        later.contains(value.name))
      continue;
    PLIMSOLL_RETURN_IF_ERROR(fill_source(executor, ValueId(v), options.seed, 0));
  }
  const int rank = options.communicator ? options.communicator->rank() : 0;
  for (const ops::ShardedState& state : ops::sharded_state(graph)) {
    if (graph.value(state.value).kind == ir::ValueKind::kWeight)
      PLIMSOLL_RETURN_IF_ERROR(fill_part(executor, state, options.seed, rank));
  }
  return {};
}

Status feed_synthetic(Executor& executor, std::uint64_t seed, int step, BatchPart part) {
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind != ir::ValueKind::kInput) continue;
    PLIMSOLL_RETURN_IF_ERROR(
        fill_source(executor, ValueId(v), seed, static_cast<std::uint64_t>(step), part));
  }
  return {};
}

// The first output as a number, when it is one.
Result<std::optional<double>> loss_of(Executor& executor) {
  const ir::Graph& graph = executor.graph();
  std::optional<double> out;
  if (graph.outputs.empty()) return out;
  const ir::TensorType& type = graph.value(graph.outputs.front()).type;
  if (type.shape.elements() != 1) return out;
  PLIMSOLL_RETURN_IF_ERROR(
      executor.result(graph.outputs.front(), [&](std::span<const std::byte> memory) -> Status {
        if (const auto array = ops::Array::from_bytes(type, memory)) out = array->number(0);
        return {};
      }));
  return out;
}

Status feed(Executor& executor, const RunOptions& options, int step) {
  if (options.feed) return options.feed(executor, options.first_step + step);
  return feed_synthetic(executor, options.seed,
                        options.fresh_batches ? options.first_step + step : 0, options.part);
}

// The executor of a step; -1 stands for the time before the first.
using ExecutorOf = std::function<Result<Executor*>(int step)>;

Result<RunReport> run_steps(const ExecutorOf& executor_of, const RunOptions& options,
                            NanFinder* finder) {
  RunReport report;
  PLIMSOLL_TRY(Executor * executor, executor_of(-1));
  PLIMSOLL_RETURN_IF_ERROR(fill_states(*executor, options));
  PLIMSOLL_RETURN_IF_ERROR(fill_constants(*executor));
  if (options.on_start) PLIMSOLL_RETURN_IF_ERROR(options.on_start(*executor));
  if (options.data_facts) report.data_set = options.data_facts();
  RankReport ranks;
  dist::Communicator* const comm = options.communicator.get();
  if (comm != nullptr) {
    ranks.ranks = comm->size();
    ranks.start_messages = comm->traffic().messages;
    comm->reset_traffic();
  }
  int steps = options.steps;
  if (options.steps_for) {
    PLIMSOLL_TRY(steps, options.steps_for(executor->graph()));
  }
  for (int step = 0; step < steps && !report.stopped; ++step) {
    Executor* const before = executor;
    PLIMSOLL_TRY(executor, executor_of(step));
    if (executor != before) PLIMSOLL_RETURN_IF_ERROR(fill_constants(*executor));
    PLIMSOLL_RETURN_IF_ERROR(feed(*executor, options, step));
    if (finder != nullptr) PLIMSOLL_RETURN_IF_ERROR(finder->look_at(*executor, step));
    // Who hangs shows within a step: between steps rank 0 may write a checkpoint, for instance.
    if (comm != nullptr && step > 0) comm->expect_steps(report.step_seconds.back());
    const Stopwatch watch;
    PLIMSOLL_RETURN_IF_ERROR(executor->step());
    report.step_seconds.push_back(watch.seconds());
    if (comm != nullptr) comm->expect_steps(std::numeric_limits<double>::infinity());
    PLIMSOLL_TRY(const std::optional<double> loss, loss_of(*executor));
    if (loss) report.losses.push_back(*loss);
    const bool bad = loss && !std::isfinite(*loss);
    if (bad && !report.first_bad_step) report.first_bad_step = step;
    if (options.on_step) options.on_step(step, loss, report.step_seconds.back());
    if (finder != nullptr && (bad || (!loss && has_bad_result(*executor)))) {
      const std::string found = finder->what();
      return bad_input(
          "{}", found.empty() ? "the result is NaN or infinite; no operator made it" : found);
    }
    const bool asked = options.stop != nullptr && options.stop->load();
    report.stopped = (options.agree ? options.agree(asked) : asked) && step + 1 < steps;
    if (options.after_step) {
      PLIMSOLL_RETURN_IF_ERROR(
          options.after_step(*executor, step, report.stopped || step + 1 == steps));
    }
  }
  if (comm != nullptr) {
    const double count = std::max<double>(1, static_cast<double>(report.step_seconds.size()));
    ranks.messages = static_cast<double>(comm->traffic().messages) / count;
    ranks.wire_bytes = static_cast<double>(comm->traffic().wire_bytes) / count;
    ranks.communication_seconds = comm->traffic().seconds / count;
    report.ranks = ranks;
  }
  report.overflow = executor->overflow_bytes();
  report.loaded = options.loaded;
  report.encoded = executor->encoded_activations();
  report.rounding = executor->rounding();
  if (!report.paging) report.paging = executor->paging();
  report.peak = executor->peak_bytes();
  report.threads = resolve_threads(options.threads);
  const kernels::Backend& backend = executor->backend();
  report.device = backend.device().name();
  report.context = backend.context_bytes();
  report.bare_context = backend.bare_context_bytes();
  report.neighbours = backend.neighbours();
  return report;
}

Result<std::vector<device::TouchedBytes>> watch(const std::vector<std::span<std::byte>>& arenas,
                                                device::TouchedBytes::Method method,
                                                std::byte pattern) {
  std::vector<device::TouchedBytes> out;
  for (const std::span<std::byte> arena : arenas) {
    if (method == device::TouchedBytes::Method::kPattern) {
      out.push_back(device::TouchedBytes::watch_pattern(arena, pattern));
    } else {
      PLIMSOLL_TRY(device::TouchedBytes watched, device::TouchedBytes::watch_pages(arena));
      out.push_back(std::move(watched));
    }
  }
  return out;
}

// Runs the steps once under watch and adds what it saw. Without arenas all that the executor took
// when it was bound lies outside them.
Result<RunReport> run_watched(const ExecutorOf& executor_of, const RunOptions& options,
                              NanFinder* finder, std::byte pattern, Measured& seen) {
  PLIMSOLL_TRY(const Executor* executor, executor_of(-1));
  const std::vector<std::span<std::byte>> arenas = executor->arenas();
  const Bytes taken = arenas.empty() ? executor->peak_bytes() : Bytes(0);
  PLIMSOLL_TRY(const std::vector<device::TouchedBytes> watches,
               watch(arenas, seen.method, pattern));
  const OutsideBytes outside;
  PLIMSOLL_TRY(RunReport report, run_steps(executor_of, options, finder));
  seen.outside = std::max(seen.outside, taken + outside.peak());
  seen.large = std::max(seen.large, outside.large_allocations());
  Bytes touched;
  for (std::size_t arena = 0; arena < watches.size(); ++arena) {
    PLIMSOLL_TRY(const Bytes highest, watches[arena].highest());
    if (arena == kHostArena) {
      seen.host = std::max(seen.host, highest);
    } else {
      touched += highest;
    }
  }
  seen.touched = std::max(seen.touched, touched);
  return report;
}

// Overwrites the arena; nothing may be in it yet.
Status fill_arena(device::Device& device, std::span<std::byte> arena, std::byte pattern) {
  PLIMSOLL_TRY(const std::unique_ptr<device::Stream> stream, device.make_stream());
  PLIMSOLL_RETURN_IF_ERROR(stream->fill(arena.data(), pattern, arena.size()));
  return stream->synchronize();
}

// One past the last byte that is not the pattern, read from the back.
Result<Bytes> highest_written(device::Device& device, std::span<const std::byte> arena,
                              std::byte pattern) {
  constexpr std::size_t kPiece = 16 << 20;
  std::vector<std::byte> piece(std::min(kPiece, arena.size()));
  for (std::size_t end = arena.size(); end > 0;) {
    const std::size_t count = std::min(piece.size(), end);
    const std::span<std::byte> part = std::span(piece).first(count);
    PLIMSOLL_RETURN_IF_ERROR(device.read(part, arena.data() + end - count));
    for (std::size_t i = count; i-- > 0;) {
      if (part[i] != pattern) return Bytes(static_cast<std::int64_t>(end - count + i + 1));
    }
    end -= count;
  }
  return Bytes(0);
}

// On a device that the host cannot look into, twice over two patterns. What others allocate on the
// device while steps run shows in what the process holds beside the arena, from the second step on:
// before it kernels load their code and the graph is made.
Result<RunReport> run_measured_on_device(const ExecutorOf& executor_of, const RunOptions& options) {
  PLIMSOLL_TRY(const Executor* executor, executor_of(-1));
  const kernels::Backend& backend = executor->backend();
  const std::vector<std::span<std::byte>> arenas = executor->arenas();
  Measured seen;
  seen.method = device::TouchedBytes::Method::kPattern;
  RunReport report;
  for (const std::byte pattern : device::TouchedBytes::kPatterns) {
    for (const std::span<std::byte> arena : arenas)
      PLIMSOLL_RETURN_IF_ERROR(fill_arena(backend.device(), arena, pattern));
    RunOptions again = options;
    const bool first = pattern == device::TouchedBytes::kPatterns.front();
    std::optional<Bytes> settled;
    again.on_step = [&](int step, std::optional<double> loss, double seconds) {
      if (step == 1) settled = backend.context_bytes();
      if (first && options.on_step) options.on_step(step, loss, seconds);
    };
    PLIMSOLL_TRY(RunReport one, run_steps(executor_of, again, nullptr));
    if (settled) seen.outside = std::max(seen.outside, backend.context_bytes() - *settled);
    Bytes touched;
    for (std::size_t arena = 0; arena < arenas.size(); ++arena) {
      PLIMSOLL_TRY(const Bytes highest, highest_written(backend.device(), arenas[arena], pattern));
      if (arena == kHostArena) {
        seen.host = std::max(seen.host, highest);
      } else {
        touched += highest;
      }
    }
    seen.touched = std::max(seen.touched, touched);
    if (first) report = std::move(one);
  }
  // Without an arena all that the executor took lies outside one.
  if (arenas.empty()) seen.outside += report.peak;
  report.measured = seen;
  report.peak = seen.touched + seen.outside;
  return report;
}

Result<RunReport> run_measured(const ExecutorOf& executor_of, const RunOptions& options,
                               NanFinder* finder) {
  using device::TouchedBytes;
  PLIMSOLL_TRY(const Executor* executor, executor_of(-1));
  if (!executor->backend().device().computes_on_host())
    return run_measured_on_device(executor_of, options);
  Measured seen;
  seen.method =
      options.measure_by.value_or(TouchedBytes::can_watch_pages() ? TouchedBytes::Method::kPages
                                                                  : TouchedBytes::Method::kPattern);
  PLIMSOLL_TRY(RunReport report,
               run_watched(executor_of, options, finder, TouchedBytes::kPatterns[0], seen));
  if (seen.method == TouchedBytes::Method::kPattern) {
    // The same steps again, of which nobody hears.
    RunOptions again = options;
    again.on_step = nullptr;
    again.after_step = nullptr;
    again.stop = nullptr;
    const auto ran = static_cast<int>(report.step_seconds.size());
    again.steps_for = [ran](const ir::Graph&) -> Result<int> { return ran; };
    const std::size_t events = options.trace != nullptr ? options.trace->events.size() : 0;
    PLIMSOLL_RETURN_IF_ERROR(
        run_watched(executor_of, again, finder, TouchedBytes::kPatterns[1], seen));
    if (options.trace != nullptr) options.trace->events.resize(events);
  }
  report.measured = seen;
  report.peak = seen.touched + seen.outside;
  return report;
}

bool on_this_machine(const RunOptions& options) {
  return options.backend == nullptr || options.backend->device().computes_on_host();
}

Result<RunReport> run(const ExecutorOf& executor_of, const RunOptions& options, NanFinder* finder) {
  const bool can = OutsideBytes::available() || !on_this_machine(options);
  PLIMSOLL_TRY(RunReport report, options.measure && can ? run_measured(executor_of, options, finder)
                                                        : run_steps(executor_of, options, finder));
  if (options.measure && !can)
    report.not_measured =
        "this program's allocations cannot be counted: it was built with sanitizers, or without "
        "allocation_calls";
  PLIMSOLL_TRY(Executor * executor, executor_of(static_cast<int>(report.step_seconds.size()) - 1));
  if (options.on_end) PLIMSOLL_RETURN_IF_ERROR(options.on_end(*executor));
  return report;
}

Result<RunReport> run(Executor& executor, const RunOptions& options, NanFinder* finder) {
  return run([&](int) -> Result<Executor*> { return &executor; }, options, finder);
}

device::Device* device_of(const RunOptions& options) {
  return options.backend == nullptr ? nullptr : &options.backend->device();
}

ExecutorOptions executor_options(const RunOptions& options, NanFinder* finder) {
  return {resolve_threads(options.threads),
          options.trace,
          options.poison,
          options.swap_file,
          options.step_seconds,
          options.wrap_kernel,
          options.space_behind,
          mix64(options.seed) + static_cast<std::uint64_t>(options.first_step),
          finder != nullptr ? finder->watch(device_of(options)) : WatchKernel{},
          options.backend,
          options.backing};
}

std::unique_ptr<NanFinder> finder_for(const RunOptions& options) {
  return options.find_nan ? std::make_unique<NanFinder>() : nullptr;
}

// Everything that outlives a step, by name: the graph of a plan may number its values otherwise.
struct HandedOver {
  std::unordered_map<std::string, std::vector<std::byte>> content;
  Status status;
};

HandedOver hand_over(Executor& from) {
  HandedOver out;
  const ir::Graph& graph = from.graph();
  for (std::size_t v = 0; v < graph.values.size() && out.status; ++v) {
    if (!ir::is_persistent(graph.values[v].kind)) continue;
    Result<std::vector<std::byte>> bytes = from.read(ValueId(v));
    if (bytes) {
      out.content.emplace(graph.values[v].name, *std::move(bytes));
    } else {
      out.status = forward(bytes);
    }
  }
  return out;
}

Status take_over(Executor& to, const HandedOver& state) {
  const ir::Graph& graph = to.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!ir::is_persistent(graph.values[v].kind)) continue;
    const auto found = state.content.find(graph.values[v].name);
    PLIMSOLL_CHECK(found != state.content.end(), "a plan has a state that the model has not");
    PLIMSOLL_RETURN_IF_ERROR(to.write(ValueId(v), found->second));
  }
  return {};
}

}  // namespace

plan::Environment environment_of(const kernels::Backend* backend, int threads) {
  if (backend == nullptr)
    return {"cpu", resolve_threads(threads), kernels::cpu_instruction_set(),
            kernels::cpu_kernel_library()};
  const std::string name = backend->device().name();
  // One card is as good as another of the kind.
  const std::string device = name.substr(0, name.find(':'));
  return {device, device == "cpu" ? resolve_threads(threads) : 0, backend->instruction_set(),
          backend->library()};
}

Result<RunReport> run_plan(plan::Plan plan, const RunOptions& options) {
  const std::unique_ptr<NanFinder> finder = finder_for(options);
  const Bytes planned = plan.device_bytes();
  const Bytes budget = plan.budget;
  // Other devices say so themselves when the arena is taken.
  if (on_this_machine(options)) PLIMSOLL_RETURN_IF_ERROR(check_machine_memory(planned));
  const Bytes host = plan.arenas.size() > 1 ? plan.arenas[1].bytes : Bytes(0);
  const double predicted = plan.predicted_seconds;
  PLIMSOLL_TRY(const std::unique_ptr<Executor> executor,
               make_planned(std::move(plan), executor_options(options, finder.get())));
  PLIMSOLL_TRY(RunReport report, run(*executor, options, finder.get()));
  report.planned_peak = planned;
  report.host = report.measured ? report.measured->host : host;
  report.budget = budget;
  report.predicted_seconds = predicted;
  return report;
}

Result<RunReport> run_plan_set(std::vector<plan::Plan> plans, const RunOptions& options) {
  const std::unique_ptr<NanFinder> finder = finder_for(options);
  const std::size_t members = plans.size();
  Bytes planned;
  for (const plan::Plan& plan : plans) planned = std::max(planned, plan.arena_bytes());
  if (on_this_machine(options)) PLIMSOLL_RETURN_IF_ERROR(check_machine_memory(planned));
  PLIMSOLL_TRY(PlannedSet executors,
               PlannedSet::make(std::move(plans), executor_options(options, finder.get())));
  const auto executor_of = [&](int step) {
    return executors.at(step < 0 ? members - 1 : static_cast<std::size_t>(step) % members);
  };
  if (options.measure) PLIMSOLL_RETURN_IF_ERROR(executors.bind_all());
  PLIMSOLL_TRY(RunReport report, run(executor_of, options, finder.get()));
  report.planned_peak = planned;
  return report;
}

Result<RunReport> run_on_demand(const ir::Graph& graph, const RunOptions& options) {
  const std::unique_ptr<NanFinder> finder = finder_for(options);
  PLIMSOLL_TRY(const std::unique_ptr<Executor> executor,
               make_on_demand(graph, executor_options(options, finder.get())));
  PLIMSOLL_TRY(RunReport report, run(*executor, options, finder.get()));
  return report;
}

Result<RunReport> run_paged(const ir::Graph& graph, const PagingOptions& paging,
                            const RunOptions& options) {
  const std::unique_ptr<NanFinder> finder = finder_for(options);
  PLIMSOLL_TRY(const std::unique_ptr<Executor> executor,
               make_paged(graph, paging, executor_options(options, finder.get())));
  return run(*executor, options, finder.get());
}

Result<RunReport> run_paged_then_planned(const ir::Graph& graph, const PagingOptions& paging,
                                         plan::Plan plan, const RunOptions& options) {
  if (options.measure)
    return fail(ErrorCode::kUsage,
                "--measure: measures one strategy; run the plan alone with --budget instead of "
                "--paging planned");
  const std::unique_ptr<NanFinder> finder = finder_for(options);
  const ExecutorOptions how = executor_options(options, finder.get());
  const Bytes planned = plan.arena_bytes();
  const Bytes host = plan.arenas.size() > 1 ? plan.arenas[1].bytes : Bytes(0);
  const Bytes budget = plan.budget;
  const double predicted = plan.predicted_seconds;
  PLIMSOLL_TRY(std::unique_ptr<Executor> executor, make_paged(graph, paging, how));
  std::optional<PagingReport> first;
  const auto executor_of = [&](int step) -> Result<Executor*> {
    if (step < 1 || first) return executor.get();
    first = executor->paging();
    const HandedOver state = hand_over(*executor);
    PLIMSOLL_RETURN_IF_ERROR(state.status);
    executor.reset();  // the arena of the plan takes its place
    PLIMSOLL_TRY(executor, make_planned(std::move(plan), how));
    PLIMSOLL_RETURN_IF_ERROR(take_over(*executor, state));
    return executor.get();
  };
  PLIMSOLL_TRY(RunReport report, run(executor_of, options, finder.get()));
  if (first) report.paging = first;
  report.planned_peak = planned;
  report.peak = std::max(report.peak, report.paging ? report.paging->capacity : Bytes(0));
  report.host = std::max(host, report.paging ? report.paging->pool : Bytes(0));
  report.budget = budget;
  report.predicted_seconds = predicted;
  return report;
}

}  // namespace plimsoll::runtime
