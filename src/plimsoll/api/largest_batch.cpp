#include "plimsoll/api/largest_batch.h"

#include <algorithm>
#include <set>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/clock.h"

namespace plimsoll::api {
namespace {

constexpr std::int64_t kLargestTried = 1 << 20;
constexpr std::int64_t kProbe = 8;      // with 1, two points of the law
constexpr double kFirstSeconds = 0.05;  // for the search of a trial, in the first round
constexpr double kMoreSeconds = 4;      // times as much in every next one
constexpr int kRounds = 4;
constexpr double kReach = 0.125;     // of the best batch: how far above it the others look
constexpr double kForThePlan = 0.8;  // of the deadline, after which only the plan is improved

class BatchSearch {
 public:
  BatchSearch(ModelRequest request, const std::string& device, const PlanOptions& options)
      : request_(std::move(request)), device_(device), options_(options) {}

  Result<LargestBatch> run() {
    PLIMSOLL_TRY(const bool first, fits(1));
    if (!first) return fail(refusal_->code, "not even a batch of 1: {}", refusal_->message);
    PLIMSOLL_RETURN_IF_ERROR(begin_at_the_law());
    for (round_ = 0; round_ < kRounds && in_time(); ++round_) {
      const std::int64_t before = best_->batch;
      PLIMSOLL_RETURN_IF_ERROR(close_in(round_ == 0 ? first_failure() : above_the_best()));
      if (is_proven() || (round_ > 0 && best_->batch == before)) break;
    }
    PLIMSOLL_RETURN_IF_ERROR(polish());
    best_->failed = first_failure();
    best_->next = stopped()                              ? NextBatch::kInterrupted
                  : is_proven()                          ? NextBatch::kProven
                  : failures_.contains(best_->batch + 1) ? NextBatch::kNotFound
                                                         : NextBatch::kNotTried;
    return std::move(*best_);
  }

 private:
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  bool in_time() const {
    return !stopped() &&
           (options_.deterministic || watch_.seconds() < kForThePlan * options_.deadline_seconds);
  }

  // A plan for this batch, if there is one, is the best so far; if not, why is in refusal_.
  Result<bool> fits(std::int64_t batch) {
    auto planned = trial(batch, trial_seconds(), round_ > 0);
    if (planned) {
      no_recompute_ = planned->summary.no_recompute;
      best_ = LargestBatch{batch, std::move(*planned), NextBatch::kNotFound, {}};
      return true;
    }
    refusal_ = planned.error();
    if (refusal_->code == ErrorCode::kDoesNotFit) {
      proven_ = std::min(proven_.value_or(batch), batch);
    } else if (refusal_->code != ErrorCode::kNoAnswer) {
      return forward(planned);
    }
    failures_.insert(batch);
    return false;
  }

  double trial_seconds() const {
    double seconds = kFirstSeconds;
    for (int round = 0; round < round_; ++round) seconds *= kMoreSeconds;
    return std::min(seconds, std::max(kFirstSeconds, options_.deadline_seconds - watch_.seconds()));
  }

  Result<PlannedGraph> trial(std::int64_t batch, double seconds, bool persist) {
    request_.sizes.batch = batch;
    request_.quiet = batch > 1;
    PlanOptions one = options_;
    one.compare = false;
    one.persist = persist || batch == 1;
    one.seed += static_cast<std::uint64_t>(round_);
    one.deadline_seconds = seconds;
    if (batch > 1) one.on_failure = nullptr;
    // Which weights stay encoded depends on the budget.
    Pipeline prepared;
    prepared.request = request_;
    prepared.device = device_;
    prepared.planning = one;
    PLIMSOLL_RETURN_IF_ERROR(advance(prepared, Stage::kPrepared));
    return plan_model(prepared, one);
  }

  // The batch that fits without recomputing, from how the step grows from 1 to kProbe.
  Status begin_at_the_law() {
    const Bytes one = no_recompute_;
    PLIMSOLL_TRY(const bool probe, fits(kProbe));
    if (!probe) return {};
    PLIMSOLL_TRY(const Bytes budget, parse_byte_size(options_.budget));
    const std::int64_t each = std::max<std::int64_t>(1, (no_recompute_ - one).value / (kProbe - 1));
    const std::int64_t guess = std::min(kLargestTried, (budget - one).value / each + 1);
    if (guess > kProbe && in_time()) {
      PLIMSOLL_TRY([[maybe_unused]] const bool found, fits(guess));
    }
    return {};
  }

  bool is_proven() const { return proven_ && *proven_ == best_->batch + 1; }
  std::optional<std::int64_t> first_failure() const {
    const auto next = failures_.upper_bound(best_->batch);
    return next == failures_.end() ? std::nullopt : std::optional(*next);
  }

  // The end of a range to look at once more: what was not proven may only have been missed.
  std::int64_t above_the_best() const {
    const auto reach = static_cast<std::int64_t>(kReach * static_cast<double>(best_->batch));
    const std::int64_t end = best_->batch + std::max<std::int64_t>(2, reach);
    return std::min(end, proven_.value_or(end));
  }

  // Doubles without an end, halves the range below one. An end that was not tried in this round
  // comes last.
  Status close_in(std::optional<std::int64_t> end) {
    bool tried = round_ == 0 || end == proven_;
    while (in_time()) {
      const std::int64_t best = best_->batch;
      if (end ? *end - best <= 1 && tried : best >= kLargestTried) break;
      const std::int64_t batch = !end              ? std::min(kLargestTried, best * 2)
                                 : *end - best > 1 ? best + (*end - best) / 2
                                                   : *end;
      PLIMSOLL_TRY(const bool found, fits(batch));
      if (!found) {
        end = batch;
        tried = true;
      } else if (end && batch == *end) {
        end = above_the_best();
        tried = end == proven_;
      }
    }
    return {};
  }

  // A faster plan of the same batch in the time that is left.
  Status polish() {
    const double left = options_.deadline_seconds - watch_.seconds();
    if (stopped() || options_.deterministic || left <= kFirstSeconds) return {};
    auto planned = trial(best_->batch, left, false);
    if (planned && planned->plan.predicted_seconds < best_->planned.plan.predicted_seconds)
      best_->planned = std::move(*planned);
    return {};
  }

  ModelRequest request_;
  const std::string& device_;
  const PlanOptions& options_;
  const Stopwatch watch_;
  int round_ = 0;
  std::optional<LargestBatch> best_;
  std::set<std::int64_t> failures_;     // batches for which no plan was found, once or always
  std::optional<std::int64_t> proven_;  // the smallest batch that cannot fit
  std::optional<Error> refusal_;        // of the last trial that failed
  Bytes no_recompute_;                  // of the last trial that fitted
};

}  // namespace

const char* name(NextBatch next) {
  switch (next) {
    case NextBatch::kProven:
      return "proven";
    case NextBatch::kNotFound:
      return "not_found";
    case NextBatch::kNotTried:
      return "deadline";
    case NextBatch::kInterrupted:
      return "interrupted";
  }
  return "unknown";
}

Result<LargestBatch> largest_batch(ModelRequest request, const std::string& device,
                                   const PlanOptions& options) {
  if (options.budget.empty() || options.budget.ends_with('%')) {
    return fail(ErrorCode::kUsage, "--max-batch needs a --budget in bytes, such as 8GiB");
  }
  return BatchSearch(std::move(request), device, options).run();
}

}  // namespace plimsoll::api
