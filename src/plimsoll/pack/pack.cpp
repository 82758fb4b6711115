#include "plimsoll/pack/pack.h"

#include <algorithm>
#include <thread>

#include "plimsoll/base/check.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/pack/bounds/core.h"
#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/check/check_packing.h"
#include "plimsoll/pack/model/bodies.h"
#include "plimsoll/pack/model/memories.h"
#include "plimsoll/pack/portfolio.h"
#include "plimsoll/pack/repack.h"

namespace plimsoll::pack {
namespace {

Status verify(const PackOptions& options) {
  if (!(options.deadline_seconds >= 0))
    return fail(ErrorCode::kUsage, "deadline {} s is negative", options.deadline_seconds);
  if (options.threads < 0 || options.threads > 1024)
    return fail(ErrorCode::kUsage, "{} threads, expected 0 to 1024", options.threads);
  return {};
}

void count_moves(const Problem& problem, Packing& packing) {
  for (std::size_t i = 0; i < problem.size() && !packing.offsets.empty(); ++i) {
    const auto& hint = problem.buffers[i].hint;
    packing.moved += hint && *hint != packing.offsets[i];
  }
}

// Offsets are written and checked within the deadline, too.
double search_seconds(const Problem& problem, const PackOptions& options) {
  constexpr double kAfterwards = 0.5e-6;  // seconds a buffer
  if (options.deterministic) return options.deadline_seconds;
  const double after = kAfterwards * static_cast<double>(problem.size());
  return options.deadline_seconds - std::min(after, options.deadline_seconds / 4);
}

}  // namespace

PackStatus status_of(const Solution& solution, std::optional<std::int64_t> capacity) {
  if (solution.lower_bound > capacity.value_or(kLargest)) return PackStatus::kInfeasible;
  if (solution.places.empty() && solution.height > 0) return PackStatus::kUnknown;
  if (capacity && solution.height > *capacity) return PackStatus::kUnknown;
  return solution.height <= solution.lower_bound ? PackStatus::kOptimal : PackStatus::kFeasible;
}

Packing pack_one_memory(const Problem& problem, const PackOptions& options, Budget& budget) {
  Packing packing;
  const BodyModel model = make_bodies(problem, 0, {});
  if (!model.contradiction.empty()) {
    packing.status = PackStatus::kInfeasible;
    packing.method = "contradiction";
    packing.core = model.contradiction;
    return packing;
  }
  std::optional<std::int64_t> capacity;
  if (problem.capacity()) capacity = problem.capacity()->value;
  Solution solution = solve(model, capacity, options, budget);
  packing.status = status_of(solution, capacity);
  packing.method = std::move(solution.method);
  packing.lower_bound = Bytes(solution.lower_bound);
  if (!solution.places.empty() || model.bodies.empty()) {
    packing.offsets.resize(problem.size());
    write_offsets(model, solution.places, packing.offsets);
    packing.heights = {Bytes(model.bodies.empty() ? 0 : solution.height)};
  }
  if (packing.status == PackStatus::kInfeasible)
    packing.core = shrink_core(model, solution.witnesses, capacity.value_or(kLargest), budget);
  return packing;
}

const char* name(PackStatus status) {
  constexpr const char* kNames[] = {"optimal", "feasible", "infeasible", "unknown"};
  return kNames[static_cast<std::size_t>(status)];
}

double Packing::gap() const {
  if (lower_bound.value <= 0 || heights.empty()) return 0;
  return static_cast<double>(height().value - lower_bound.value) /
         static_cast<double>(lower_bound.value);
}

Result<Packing> pack(const Problem& problem, const PackOptions& options) {
  const Stopwatch watch;
  PLIMSOLL_RETURN_IF_ERROR(verify(options));
  PLIMSOLL_RETURN_IF_ERROR(verify(problem));
  PackOptions chosen = options;
  if (chosen.threads == 0)
    chosen.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Budget budget(search_seconds(problem, options), options.deterministic);
  Packing packing = problem.memories.size() > 1 ? pack_memories(problem, chosen, budget)
                    : chosen.keep_hints         ? repack(problem, chosen, budget)
                                                : pack_one_memory(problem, chosen, budget);
  count_moves(problem, packing);
  packing.seconds = watch.seconds();
  if (!packing.offsets.empty()) {
    const Status checked = check_packing(problem, packing);
    PLIMSOLL_CHECK(checked.has_value(), "{}: {}", packing.method, checked.error().message);
  }
  return packing;
}

}  // namespace plimsoll::pack
