#include "plimsoll/pack/pack.h"

#include <algorithm>
#include <thread>

#include "plimsoll/base/check.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/check/check_packing.h"
#include "plimsoll/pack/memories.h"
#include "plimsoll/pack/one_memory.h"
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

Result<Packing> pack(const Problem& problem, const PackOptions& options) {
  const Stopwatch watch;
  PLIMSOLL_RETURN_IF_ERROR(verify(options));
  PLIMSOLL_RETURN_IF_ERROR(verify(problem));
  PackOptions chosen = options;
  if (chosen.threads == 0)
    chosen.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  Budget budget(search_seconds(problem, options), options.deterministic, options.stop);
  Packing packing = problem.memories.size() > 1 ? pack_memories(problem, chosen, budget)
                    : chosen.keep_hints         ? repack(problem, chosen, budget)
                                                : pack_one_memory(problem, chosen, budget);
  count_moves(problem, packing);
  packing.seconds = watch.seconds();
  packing.interrupted = options.stop != nullptr && options.stop->load();
  if (!packing.offsets.empty()) {
    const Status checked = check_packing(problem, packing);
    PLIMSOLL_CHECK(checked.has_value(), "{}: {}", packing.method, checked.error().message);
  }
  return packing;
}

}  // namespace plimsoll::pack
