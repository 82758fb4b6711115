#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "plimsoll/base/clock.h"
#include "plimsoll/capi/arena.h"
#include "plimsoll/capi/read_request.h"
#include "plimsoll/capi/write_answer.h"
#include "plimsoll/plimsoll.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/verify_schedule.h"

namespace plimsoll::capi {
namespace {

constexpr double kAfterwards = 0.01;  // of the deadline, for checking and writing what was found
constexpr std::chrono::milliseconds kBetweenLooks(2);
constexpr int kArenaAttempts = 4;
constexpr std::size_t kRunnersUp = 4;

// Raises a flag when the caller cancels or the deadline has passed: searches stop by themselves,
// but what comes after a search that failed (the smallest budget, by bisection) has no clock of its
// own.
class Stopper {
 public:
  Stopper(const volatile std::int32_t* cancel, std::optional<double> seconds)
      : cancel_(cancel), seconds_(seconds) {
    if (cancelled()) stop_ = true;
    if (cancel_ != nullptr || seconds_) thread_ = std::thread([this] { watch(); });
  }
  ~Stopper() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;

  std::atomic<bool>& flag() { return stop_; }

 private:
  bool cancelled() const { return cancel_ != nullptr && *cancel_ != 0; }

  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      if (cancelled() || (seconds_ && watch_.seconds() >= *seconds_)) stop_ = true;
      if (stop_) return;
      if (cancel_ != nullptr) {
        wake_.wait_for(lock, kBetweenLooks);
      } else {
        wake_.wait_for(
            lock, std::chrono::duration<double>(std::min(3600.0, *seconds_ - watch_.seconds())));
      }
    }
  }

  const volatile std::int32_t* cancel_;
  std::optional<double> seconds_;
  Stopwatch watch_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

struct Chosen {
  schedule::Schedule schedule;
  std::optional<Arena> arena;
};

class DagPlanner {
 public:
  DagPlanner(Request& request, const Stopwatch& watch, Answer& answer)
      : request_(request), workload_(request.workload), watch_(watch), answer_(answer) {}

  Status run() {
    const schedule::Schedule kept = schedule::keep_all(workload_);
    answer_.keep_all_bytes = kept.peak_bytes.value;
    answer_.keep_all_seconds = kept.seconds * request_.unit;
    describe_floor();
    Result<Chosen> chosen = request_.slowdown ? choose_smallest() : choose(kept);
    if (!chosen) {
      answer_.smallest_budget_bytes = schedule::smallest_found(workload_, request_.fit).value;
      return forward(chosen);
    }
    const Bytes budget = request_.fit.budget;
    PLIMSOLL_TRY(
        const schedule::Verdict verdict,
        schedule::verify_schedule(workload_, chosen->schedule, budget, request_.fit.copies));
    describe(verdict, kept, chosen->schedule);
    if (chosen->arena) answer_.arena_bytes = chosen->arena->bytes.value;
    write_steps(request_, chosen->schedule, chosen->arena ? &*chosen->arena : nullptr, answer_);
    return {};
  }

 private:
  void describe_floor() {
    const schedule::MemoryBound floor = schedule::memory_bound(workload_, request_.fit.remedies);
    answer_.floor_bytes = floor.bytes.value;
    answer_.limiting_task = floor.task.valid() ? request_.given[floor.task.index()] : -1;
    for (ValueId id : floor.limiting)
      answer_.all_limiting.push_back({id.value, workload_.value(id).bytes.value});
  }

  void describe(const schedule::Verdict& verdict, const schedule::Schedule& kept,
                const schedule::Schedule& chosen) {
    answer_.peak_bytes = answer_.smallest_budget_bytes = verdict.peak_bytes.value;
    answer_.host_peak_bytes = verdict.host_peak_bytes.value;
    answer_.seconds = verdict.seconds * request_.unit;
    const double bound = request_.budgeted
                             ? schedule::bound_for_order_of(chosen, workload_, request_.fit)
                             : kept.seconds;
    answer_.bound_seconds = std::min(bound, verdict.seconds) * request_.unit;
    answer_.optimal = verdict.seconds <= bound * (1 + 1e-9);
  }

  // Its own peak is the budget of what comes after.
  Result<Chosen> choose_smallest() {
    schedule::FitOptions options = request_.fit;
    options.bound = false;
    options.deadline_seconds =
        std::max(0.0, (1 - kAfterwards) * request_.fit.deadline_seconds - watch_.seconds());
    PLIMSOLL_TRY(schedule::Fit least,
                 schedule::least_memory(workload_, options, *request_.slowdown));
    Chosen chosen{std::move(least.schedule), std::nullopt};
    request_.budgeted = true;
    request_.fit.budget = chosen.schedule.peak_bytes;
    if (request_.alignment > 0) {
      PLIMSOLL_TRY(chosen.arena, place(workload_, chosen.schedule, request_.alignment));
    }
    return chosen;
  }

  Result<Chosen> choose(const schedule::Schedule& kept) {
    schedule::FitOptions options = request_.fit;
    options.bound = false;  // comes at the end, for what was chosen
    for (int attempt = 0; attempt < (request_.alignment > 0 ? kArenaAttempts : 1); ++attempt) {
      Chosen chosen;
      std::vector<schedule::Schedule> others;
      if (request_.budgeted) {
        options.deadline_seconds =
            std::max(0.0, (1 - kAfterwards) * request_.fit.deadline_seconds - watch_.seconds());
        Result<schedule::Fit> fitted = schedule::fit(workload_, options);
        if (!fitted && attempt > 0) break;
        if (!fitted) return forward(fitted);
        chosen.schedule = std::move(fitted->schedule);
        others = std::move(fitted->runners_up);
      } else {
        chosen.schedule = kept;
      }
      if (request_.alignment == 0) return chosen;
      PLIMSOLL_TRY(const bool placed, place_one_of(chosen, others));
      if (placed) return chosen;
      options.budget -= smallest_arena_ - request_.fit.budget;
      if (options.budget.value < 0) break;
    }
    return fail(ErrorCode::kNoAnswer,
                "no plan found whose arena is within {} bytes; the smallest arena has {} bytes: "
                "give it that, or more time",
                request_.fit.budget, smallest_arena_);
  }

  // The first whose arena is within the budget.
  Result<bool> place_one_of(Chosen& chosen, std::vector<schedule::Schedule>& others) {
    for (std::size_t i = 0; i <= std::min(kRunnersUp, others.size()); ++i) {
      if (i > 0) chosen.schedule = std::move(others[i - 1]);
      PLIMSOLL_TRY(chosen.arena, place(workload_, chosen.schedule, request_.alignment));
      smallest_arena_ = std::min(smallest_arena_, chosen.arena->bytes);
      if (chosen.arena->bytes <= request_.fit.budget) return true;
    }
    return false;
  }

  Request& request_;
  const schedule::Workload& workload_;
  const Stopwatch& watch_;
  Answer& answer_;
  Bytes smallest_arena_ = Bytes::max();
};

Status plan(const plimsoll_plan_request* given, Answer& answer) {
  const Stopwatch watch;
  PLIMSOLL_TRY(const plimsoll_plan_request in, copy_of(given));
  PLIMSOLL_TRY(Request request, read_request(in));
  const bool timed = !request.fit.deterministic;
  Stopper stopper(in.cancel, timed ? std::optional(request.fit.deadline_seconds) : std::nullopt);
  request.fit.stop = &stopper.flag();
  if (in.progress != nullptr) {
    request.fit.on_better = [&in, &stopper,
                             unit = request.unit](const schedule::FitProgress& better) {
      if (in.progress(in.progress_user, better.seconds * unit, better.peak_bytes.value,
                      better.elapsed) != 0)
        stopper.flag() = true;
    };
  }
  Status done = DagPlanner(request, watch, answer).run();
  answer.search_seconds = watch.seconds();
  return done;
}

void refuse(Answer& answer, ErrorCode code, std::string message) {
  answer.status = static_cast<std::int32_t>(code);
  answer.text = std::move(message);
  answer.all_steps.clear();
  answer.all_instances.clear();
}

// The pointers of the C struct, once nothing moves any more.
void point(Answer& answer) {
  answer.message = answer.text.c_str();
  answer.step_count = static_cast<std::int64_t>(answer.all_steps.size());
  answer.steps = answer.all_steps.data();
  answer.instance_count = static_cast<std::int64_t>(answer.all_instances.size());
  answer.instances = answer.all_instances.data();
  answer.step_instances = answer.all_step_instances.data();
  answer.waits = answer.all_waits.data();
  answer.limiting_count = static_cast<std::int64_t>(answer.all_limiting.size());
  answer.limiting = answer.all_limiting.data();
}

}  // namespace
}  // namespace plimsoll::capi

int plimsoll_plan_dag(const plimsoll_plan_request* request, plimsoll_plan_answer** out) {
  using plimsoll::ErrorCode;
  using plimsoll::capi::Answer;
  if (out != nullptr) *out = nullptr;
  if (request == nullptr || out == nullptr) return PLIMSOLL_USAGE;
  try {
    auto answer = std::make_unique<Answer>();
    answer->struct_size = sizeof(plimsoll_plan_answer);
    answer->version = PLIMSOLL_PLAN_VERSION;
    answer->limiting_task = -1;
    try {
      const plimsoll::Status done = plimsoll::capi::plan(request, *answer);
      if (!done) plimsoll::capi::refuse(*answer, done.error().code, done.error().message);
    } catch (const std::bad_alloc&) {
      plimsoll::capi::refuse(*answer, ErrorCode::kInternal, "memory is out");
    } catch (const std::exception& problem) {
      plimsoll::capi::refuse(*answer, ErrorCode::kInternal, problem.what());
    }
    plimsoll::capi::point(*answer);
    *out = answer.release();
    return (*out)->status;
  } catch (...) {
    return PLIMSOLL_INTERNAL;
  }
}

void plimsoll_plan_answer_free(plimsoll_plan_answer* answer) {
  delete static_cast<plimsoll::capi::Answer*>(answer);
}

const char* plimsoll_version(void) {
  return PLIMSOLL_VERSION;
}
