#include "plimsoll/api/largest_batch.h"

#include <algorithm>

#include "plimsoll/base/clock.h"

namespace plimsoll::api {
namespace {

constexpr std::int64_t kLargestTried = 1 << 20;
constexpr double kShare = 0.15;  // of the time left, for one trial

bool is_too_large(const Error& error) {
  return error.code == ErrorCode::kDoesNotFit || error.code == ErrorCode::kNoAnswer;
}

}  // namespace

Result<LargestBatch> largest_batch(ModelRequest request, const std::string& device,
                                   const PlanOptions& options) {
  if (options.budget.empty() || options.budget.ends_with('%')) {
    return fail(ErrorCode::kUsage, "--max-batch needs a --budget in bytes, such as 8GiB");
  }
  const Stopwatch watch;
  const auto trial = [&](std::int64_t batch) -> Result<PlannedGraph> {
    request.sizes.batch = batch;
    request.quiet = batch > 1;
    PLIMSOLL_TRY(Pipeline prepared, prepare_model(request, device));
    PlanOptions one = options;
    one.compare = false;
    one.deadline_seconds = std::max(0.05, kShare * (options.deadline_seconds - watch.seconds()));
    if (batch > 1) one.on_failure = nullptr;
    return plan_model(prepared, one);
  };
  PLIMSOLL_TRY(PlannedGraph first, trial(1));
  LargestBatch best{1, std::move(first)};
  std::int64_t failed = 0;
  const auto in_time = [&] {
    return (options.deterministic || watch.seconds() < options.deadline_seconds) &&
           (options.stop == nullptr || !options.stop->load());
  };
  while (in_time() && (failed == 0 ? best.batch < kLargestTried : failed - best.batch > 1)) {
    const std::int64_t batch =
        failed == 0 ? best.batch * 2 : best.batch + (failed - best.batch) / 2;
    auto planned = trial(batch);
    if (planned) {
      best = {batch, std::move(*planned)};
    } else if (is_too_large(planned.error())) {
      failed = batch;
    } else {
      return forward(planned);
    }
  }
  return best;
}

}  // namespace plimsoll::api
