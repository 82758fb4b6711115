#include "plimsoll/api/running.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/machine_memory.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/ops/array.h"
#include "plimsoll/runtime/initial_content.h"
#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/runtime/on_demand.h"
#include "plimsoll/runtime/planned.h"

namespace plimsoll::api {
namespace {

// Content is drawn row-major, so that it does not depend on the layout a source was given.
void fill(const ir::Value& value, std::uint64_t seed, std::uint64_t step, std::span<std::byte> memory) {
  if (value.type.layout.is_row_major()) return runtime::fill_source(value, seed, step, memory);
  ir::Value plain = value;
  plain.type.layout = {};
  std::vector<std::byte> content(static_cast<std::size_t>(ir::bytes_of(plain.type).value));
  runtime::fill_source(plain, seed, step, content);
  runtime::copy_from_row_major(value.type, content, memory);
}

Status fill_sources(runtime::Executor& executor, std::uint64_t seed) {
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (!ir::is_source(value.kind)) continue;
    const std::span<std::byte> memory = executor.source(ValueId(v));
    if (const auto* data = graph.data(ValueId(v))) {
      if (!data->empty()) std::memcpy(memory.data(), data->data(), data->size());
    } else if (value.kind != ir::ValueKind::kInput) {
      fill(value, seed, 0, memory);
    }
  }
  return {};
}

Status feed_synthetic(runtime::Executor& executor, std::uint64_t seed, int step) {
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind != ir::ValueKind::kInput) continue;
    fill(value, seed, static_cast<std::uint64_t>(step), executor.source(ValueId(v)));
  }
  return {};
}

// The first output as a number, when it is one.
std::optional<double> loss_of(runtime::Executor& executor) {
  const ir::Graph& graph = executor.graph();
  if (graph.outputs.empty()) return std::nullopt;
  const ir::TensorType& type = graph.value(graph.outputs.front()).type;
  if (type.shape.elements() != 1) return std::nullopt;
  const auto array = ops::Array::from_bytes(type, executor.result(graph.outputs.front()));
  return array ? std::optional(array->number(0)) : std::nullopt;
}

Result<RunReport> run_steps(runtime::Executor& executor, const RunOptions& options) {
  RunReport report;
  PLIMSOLL_RETURN_IF_ERROR(fill_sources(executor, options.seed));
  if (options.on_start) PLIMSOLL_RETURN_IF_ERROR(options.on_start(executor));
  for (int step = 0; step < options.steps; ++step) {
    if (options.feed) {
      PLIMSOLL_RETURN_IF_ERROR(options.feed(executor, options.first_step + step));
    } else {
      PLIMSOLL_RETURN_IF_ERROR(feed_synthetic(executor, options.seed, options.first_step + step));
    }
    const Stopwatch watch;
    PLIMSOLL_RETURN_IF_ERROR(executor.step());
    report.step_seconds.push_back(watch.seconds());
    const std::optional<double> loss = loss_of(executor);
    if (loss) report.losses.push_back(*loss);
    if (options.on_step) options.on_step(step, loss, report.step_seconds.back());
  }
  if (options.on_end) PLIMSOLL_RETURN_IF_ERROR(options.on_end(executor));
  PLIMSOLL_RETURN_IF_ERROR(executor.status());
  report.overflow = executor.overflow_bytes();
  report.peak = executor.peak_bytes();
  report.threads = resolve_threads(options.threads);
  return report;
}

runtime::ExecutorOptions executor_options(const RunOptions& options) {
  return {resolve_threads(options.threads), options.trace, options.poison, options.swap_file, options.step_seconds};
}

}  // namespace

int resolve_threads(int threads) {
  return threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

plan::Environment this_machine(int threads) {
  return {"cpu", resolve_threads(threads), kernels::cpu_instruction_set(), kernels::cpu_kernel_library()};
}

double typical_seconds(const RunReport& report) {
  std::vector<double> seconds = report.step_seconds;
  if (seconds.size() > 1) seconds.erase(seconds.begin());
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>((seconds.size() - 1) / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

Result<RunReport> run_plan(plan::Plan plan, const RunOptions& options) {
  const Bytes planned = plan.arena_bytes();
  const Bytes budget = plan.budget;
  PLIMSOLL_RETURN_IF_ERROR(check_machine_memory(planned));
  const double predicted = plan.predicted_seconds;
  PLIMSOLL_TRY(const std::unique_ptr<runtime::Executor> executor, runtime::make_planned(std::move(plan), executor_options(options)));
  PLIMSOLL_TRY(RunReport report, run_steps(*executor, options));
  report.planned_peak = planned;
  report.budget = budget;
  report.predicted_seconds = predicted;
  report.strategy = Strategy::kPlanned;
  return report;
}

Result<RunReport> run_on_demand(const ir::Graph& graph, const RunOptions& options) {
  PLIMSOLL_TRY(const std::unique_ptr<runtime::Executor> executor, runtime::make_on_demand(graph, executor_options(options)));
  PLIMSOLL_TRY(RunReport report, run_steps(*executor, options));
  report.strategy = Strategy::kOnDemand;
  return report;
}

}  // namespace plimsoll::api
