#include "plimsoll/plan/fit/fit_budget.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/plan/fit/no_recompute_plan.h"
#include "plimsoll/plan/streams.h"

namespace plimsoll::plan {
namespace {

constexpr int kAttempts = 12;
// of the deadline, for a search that finds out what packing needs
constexpr double kQuickShare = 0.04;
// For the first search, of the deadline. On graphs with so many tasks quick searches find nothing.
constexpr double kFirstShare = 0.5, kFirstShareOfLarge = 0.8;
constexpr std::size_t kLargeGraph = 4000;
constexpr double kTighterShare = 0.3;  // of the deadline, for searches under less everywhere
// times the proven lower bound: there it takes luck, so most of the deadline is for them
constexpr double kNearBound = 1.08;
// Budgets of those, as shares of what is above the lower bound.
constexpr double kTighter[] = {0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02};
constexpr double kTighterSeconds = 0.1;  // each
constexpr double kQuickPacking = 0.01;   // counted seconds for the packing of each
// Times the price of letting a value go whose buffer ended above the budget, each time it does.
constexpr double kInTheWay = 0.3, kLeastWeight = 0.01;
// Above the lower bound with all techniques: where a plan with them is looked for.
constexpr double kRoomForPacking = 1.03;
// at least, whatever the deadline: the alternative is no plan
constexpr int kTighterTries = 2;

schedule::FitOptions search_options(const PlanOptions& options) {
  schedule::FitOptions how;
  how.remedies = options.remedies;
  how.order = options.order;
  how.copies = options.copies;
  how.deterministic = options.deterministic;
  how.seed = options.seed;
  how.threads = resolve_threads(options.threads);
  how.on_better = options.on_better;
  how.stop = options.stop;
  how.bound = false;  // it is said of the plan that is taken
  return how;
}

class BudgetFitter {
 public:
  BudgetFitter(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
               const PlanOptions& options, Bytes budget, PlanSummary& summary,
               const std::vector<schedule::Fit>* candidates)
      : graph_(graph),
        mapped_(mapped),
        options_(options),
        budget_(budget),
        summary_(summary),
        candidates_(candidates),
        held_back_(mapped.workload),
        how_(search_options(options)) {
    how_.budget = budget;
    bound_ = schedule::memory_bound(mapped.workload, options.remedies);
    for (const ValueId value : bound_.limiting) {
      limiting_.push_back(mapped.workload.value(value).name);
      limiting_bytes_.push_back(mapped.workload.value(value).bytes);
    }
  }

  Result<Plan> run() {
    if (budget_ < bound_.bytes) {
      return give_up({ErrorCode::kDoesNotFit,
                      fmt::format("{} is too little: no plan can do with less than {} ({} bytes)",
                                  human(budget_), human(bound_.bytes), bound_.bytes)});
    }
    if (options_.deterministic) return first_of_ladder();
    if (options_.order == schedule::OrderChoice::kSearch)
      how_.mirrored = schedule::mirrored_order(mapped_.workload);
    // Half of the time for the first search, less near the lower bound and more on large graphs. If
    // packing needs more than the budget, quick ones find what to hold back, and the rest of the
    // time goes into one search under that.
    std::optional<Found> best;
    enum class Stage { kFirst, kQuick, kLast, kOver } stage = Stage::kFirst;
    for (int attempt = 0;
         attempt < kAttempts && stage != Stage::kOver && (attempt == 0 || time_left() > 0);
         ++attempt) {
      if (stage == Stage::kQuick && !best &&
          (near_bound() || time_left() < kTighterShare * options_.deadline_seconds))
        break;
      const double quick = kQuickShare * options_.deadline_seconds;
      how_.deadline_seconds = std::max(0.02, stage == Stage::kFirst   ? first_share() * time_left()
                                             : stage == Stage::kQuick ? quick
                                                                      : time_left());
      const auto fitted = schedule::fit(held_back_, how_);
      if (!fitted) {
        if (fitted.error().code != ErrorCode::kDoesNotFit &&
            fitted.error().code != ErrorCode::kNoAnswer)
          return forward(fitted);
        if (stage != Stage::kQuick) break;
        hold_back_less();
        continue;
      }
      PLIMSOLL_TRY(const bool fits, pack_fastest(*fitted, best));
      stage = stage == Stage::kLast || (stage == Stage::kFirst && fits) ? Stage::kOver
              : fits                                                    ? Stage::kLast
                                                                        : Stage::kQuick;
      ++how_.seed;
    }
    if (!best) {
      PLIMSOLL_TRY(best, tighter());
    }
    if (!best && options_.persist) {
      PLIMSOLL_TRY(best, last_resort());
    }
    if (best) return accept(std::move(best->plan), best->fit);
    return none_found();
  }

 private:
  struct Found {
    Plan plan;
    schedule::Fit fit;
  };

  // Packs what was fitted, and if that needs too much, what was found on the way to it, until one
  // is inside the budget; keeps it if it is faster than `best`. True when it is the fitted schedule
  // itself.
  Result<bool> pack_fastest(const schedule::Fit& fitted, std::optional<Found>& best) {
    const auto keep_if_faster = [&](Plan plan, const schedule::Schedule& schedule) {
      if (best && best->fit.schedule.seconds <= schedule.seconds) return;
      best = Found{std::move(plan), fitted};
      best->fit.schedule = schedule;
    };
    PLIMSOLL_TRY(Plan plan, packed(fitted.schedule));
    if (plan.arena_bytes() <= budget_) {
      keep_if_faster(std::move(plan), fitted.schedule);
      return true;
    }
    hold_back(plan);
    const double enough = watch_.seconds() + kQuickShare * options_.deadline_seconds;
    for (const schedule::Schedule& slower : fitted.runners_up) {
      if (time_left() <= 0 || watch_.seconds() > enough ||
          (best && best->fit.schedule.seconds <= slower.seconds))
        break;
      PLIMSOLL_TRY(Plan other, packed(slower));
      if (other.arena_bytes() > budget_) continue;
      keep_if_faster(std::move(other), slower);
      break;
    }
    return false;
  }

  // Where the places that packing needs move with every search, less in all of the step, again and
  // again, until a schedule packs into the budget.
  Result<std::optional<Found>> tighter() {
    schedule::FitOptions how = how_;
    how.deadline_seconds = kTighterSeconds;
    quickly_ = true;
    std::optional<Found> best;
    const int least = options_.persist ? kTighterTries : 0;
    for (int tries = 0; !best && (tries < least || time_left() > 0); ++tries) {
      if (options_.stop != nullptr && options_.stop->load()) break;
      const double above = static_cast<double>((budget_ - bound_.bytes).value);
      how.budget = bound_.bytes +
                   Bytes(static_cast<std::int64_t>(kTighter[tries % std::ssize(kTighter)] * above));
      ++how.seed;
      auto fitted = schedule::fit(mapped_.workload, how);
      if (!fitted) continue;
      fitted->runners_up.clear();
      PLIMSOLL_RETURN_IF_ERROR(pack_fastest(*fitted, best));
    }
    quickly_ = false;
    return best;
  }

  // A slow plan that fits is better than none.
  Result<std::optional<Found>> last_resort() {
    std::optional<Found> best;
    PLIMSOLL_TRY(const std::vector<schedule::Fit> candidates,
                 schedule::task_by_task(mapped_.workload, how_));
    for (const schedule::Fit& fitted : candidates)
      PLIMSOLL_RETURN_IF_ERROR(pack_fastest(fitted, best));
    if (best) return best;
    auto found = smallest_found();
    if (found && found->plan.arena_bytes() <= budget_) return *std::move(found);
    return best;
  }

  bool near_bound() const {
    return static_cast<double>(budget_.value) <
           kNearBound * static_cast<double>(bound_.bytes.value);
  }
  double first_share() const {
    if (mapped_.workload.tasks.size() > kLargeGraph) return kFirstShareOfLarge;
    return near_bound() ? kTighterShare / 2 : kFirstShare;
  }

  tl::unexpected<Error> none_found() {
    return give_up({ErrorCode::kNoAnswer,
                    fmt::format("no plan within {} was found in the time given", human(budget_))});
  }

  Result<Plan> first_of_ladder() {
    std::vector<schedule::Fit> own;
    if (candidates_ == nullptr) {
      PLIMSOLL_TRY(own, deterministic_candidates(mapped_, options_));
    }
    // A plan whose places let copies go side by side may take less than its schedule, so that the
    // first is not the fastest for certain; a larger budget must not give a slower one.
    std::optional<Plan> best;
    const schedule::Fit* of = nullptr;
    for (const schedule::Fit& candidate : candidates_ != nullptr ? *candidates_ : own) {
      if (candidate.schedule.peak_bytes > budget_ ||
          (best && computing_seconds(candidate.schedule) >= best->predicted_seconds))
        continue;
      PLIMSOLL_TRY(Plan plan, packed(candidate.schedule));
      if (plan.arena_bytes() > budget_ ||
          (best && best->predicted_seconds <= plan.predicted_seconds))
        continue;
      best = std::move(plan);
      of = &candidate;
    }
    if (best) return accept(*std::move(best), *of);
    return none_found();
  }

  // What no plan of it can be faster than.
  static double computing_seconds(const schedule::Schedule& schedule) {
    double out = 0;
    for (const schedule::Action& action : schedule.actions)
      out += action.stream == schedule::Stream::kCompute ? action.seconds : 0;
    return out;
  }

  Result<Plan> packed(const schedule::Schedule& schedule) {
    PLIMSOLL_TRY(MakePlanOptions how, packing_options(graph_, options_));
    if (quickly_) how.pack_seconds = kQuickPacking;
    PLIMSOLL_TRY(Plan plan, make_plan(graph_, mapped_, schedule, how));
    smallest_ = std::min(smallest_, plan.arena_bytes());
    return plan;
  }

  double time_left() const { return options_.deadline_seconds - watch_.seconds(); }

  Result<Plan> accept(Plan plan, const schedule::Fit& fitted) {
    plan.budget = budget_;
    const double alone = plan.predicted_seconds;  // on one stream beside those of copies
    PLIMSOLL_RETURN_IF_ERROR(spread(plan, options_));
    summary_.memory_bound = bound_;
    summary_.limiting = limiting_;
    summary_.limiting_bytes = limiting_bytes_;
    // Of the workload as it is: a bound under what was held back would promise too much.
    const double on_one =
        std::min(schedule::bound_for_order_of(fitted.schedule, mapped_.workload, how_), alone);
    summary_.bound_seconds = bound_on_streams(plan, options_.streams, on_one);
    summary_.counts = schedule::count(fitted.schedule);
    return plan;
  }

  // Tasks that run while a buffer lies above the budget are fitted as if they needed that much
  // more.
  void hold_back(const Plan& plan) {
    const Bytes most = budget_ - bound_.bytes;
    how_.weights.resize(mapped_.workload.values.size(), 1.0);
    std::vector<std::int64_t> excess(plan.steps.size() + 1, 0);
    for (const PlanBuffer& buffer : plan.buffers) {
      const std::int64_t over = buffer.offset.value + buffer.bytes.value - budget_.value;
      if (buffer.arena != 0 || over <= 0) continue;
      if (buffer.value.valid()) {
        double& weight = how_.weights[mapped_.place[buffer.value.index()].value.index()];
        weight = std::max(kLeastWeight, weight * kInTheWay);
      }
      for (std::int64_t s = buffer.lifetime.begin.value; s < buffer.lifetime.end.value; ++s) {
        excess[static_cast<std::size_t>(s)] = std::max(excess[static_cast<std::size_t>(s)], over);
      }
    }
    std::vector<std::int64_t> by_node(graph_.nodes.size(), 0);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (!plan.steps[s].node.valid()) continue;
      std::int64_t& own = by_node[plan.steps[s].node.index()];
      own = std::max(own, excess[s]);
    }
    for (std::size_t t = 0; t < held_back_.tasks.size(); ++t) {
      const Bytes before = mapped_.workload.tasks[t].scratch;
      const Bytes more =
          held_back_.tasks[t].scratch + Bytes(by_node[mapped_.node_of_task[t].index()]);
      held_back_.tasks[t].scratch = std::min(more, before + most);
    }
  }

  // Half of it, where so much is held back that no schedule is found.
  void hold_back_less() {
    for (std::size_t t = 0; t < held_back_.tasks.size(); ++t) {
      Bytes& scratch = held_back_.tasks[t].scratch;
      scratch = scratch - Bytes((scratch - mapped_.workload.tasks[t].scratch).value / 2);
    }
  }

  // The plan of the smallest arena that can be had in little time, so that the user knows what to
  // ask for.
  Result<Found> smallest_found() {
    schedule::FitOptions quick = how_;
    quick.on_better = nullptr;
    quick.deterministic = false;
    quick.deadline_seconds = 0.1;
    quick.budget = schedule::smallest_found(mapped_.workload, quick);
    PLIMSOLL_TRY(schedule::Fit fitted, schedule::fit(mapped_.workload, quick));
    PLIMSOLL_TRY(Plan plan, packed(fitted.schedule));
    return Found{std::move(plan), std::move(fitted)};
  }

  // The smallest arena with all techniques, where fewer are allowed; zero where none is smaller.
  Bytes smallest_with_all(Bytes without) {
    schedule::FitOptions all = how_;
    all.on_better = nullptr;
    all.deterministic = false;
    all.weights.clear();
    all.deadline_seconds = 0.1;
    all.remedies.recompute = all.remedies.swap = true;
    all.remedies.encode = options_.codecs.encode_bytes_per_second > 0;
    if (all.remedies == options_.remedies) return {};
    const double floor =
        static_cast<double>(schedule::memory_bound(mapped_.workload, all.remedies).bytes.value);
    all.budget = Bytes(static_cast<std::int64_t>(kRoomForPacking * floor));
    std::vector<schedule::Schedule> candidates;
    if (auto slow = schedule::task_by_task(mapped_.workload, all)) {
      for (schedule::Fit& fitted : *slow) candidates.push_back(std::move(fitted.schedule));
    }
    all.budget = schedule::smallest_found(mapped_.workload, all);
    if (auto found = schedule::fit(mapped_.workload, all))
      candidates.push_back(std::move(found->schedule));
    Bytes smallest = without;
    for (const schedule::Schedule& schedule : candidates) {
      if (const auto plan = packed(schedule)) smallest = std::min(smallest, plan->arena_bytes());
    }
    return smallest < without ? smallest : Bytes(0);
  }

  tl::unexpected<Error> give_up(Error error) {
    PlanFailure failure;
    if (smallest_ == Bytes::max() && options_.persist) static_cast<void>(smallest_found());
    failure.smallest = std::min(smallest_, summary_.no_recompute);
    error.message += fmt::format("; the smallest found needs {} ({} bytes)",
                                 human(failure.smallest), failure.smallest);
    if (options_.persist) failure.all_techniques = smallest_with_all(failure.smallest);
    if (failure.all_techniques.value > 0)
      error.message +=
          fmt::format("; `--techniques {}` fits from {} ({} bytes)",
                      options_.codecs.encode_bytes_per_second > 0 ? "all" : "recompute,swap",
                      human(failure.all_techniques), failure.all_techniques);
    if (!limiting_.empty())
      error.message +=
          fmt::format("; {} must be there at once{}", named_bytes(limiting_, limiting_bytes_),
                      beside(bound_.bytes, limiting_bytes_));
    failure.error = error;
    failure.budget = budget_;
    failure.no_recompute = summary_.no_recompute;
    failure.no_recompute_seconds = summary_.no_recompute_seconds;
    failure.lower_bound = bound_.bytes;
    failure.limiting = limiting_;
    if (options_.on_failure) options_.on_failure(failure);
    return tl::unexpected<Error>(std::move(error));
  }

  const ir::Graph& graph_;
  const schedule::GraphWorkload& mapped_;
  const PlanOptions& options_;
  Bytes budget_;
  PlanSummary& summary_;
  const std::vector<schedule::Fit>* candidates_;
  schedule::Workload held_back_;
  schedule::FitOptions how_;
  schedule::MemoryBound bound_;
  std::vector<std::string> limiting_;
  std::vector<Bytes> limiting_bytes_;
  Bytes smallest_ = Bytes::max();
  bool quickly_ = false;  // packing with little work, to see many schedules
  Stopwatch watch_;
};

}  // namespace

Result<std::vector<schedule::Fit>> deterministic_candidates(const schedule::GraphWorkload& mapped,
                                                            const PlanOptions& options) {
  schedule::FitOptions how = search_options(options);
  how.budget = Bytes::max();
  PLIMSOLL_TRY(std::vector<schedule::Fit> out, schedule::ladder(mapped.workload, how));
  // The slow ones are of the lower bound: the same whatever the budget, as the rest of the ladder.
  how.budget = schedule::memory_bound(mapped.workload, options.remedies).bytes;
  PLIMSOLL_TRY(std::vector<schedule::Fit> slow, schedule::task_by_task(mapped.workload, how));
  std::ranges::move(slow, std::back_inserter(out));
  std::ranges::stable_sort(out, {}, [](const schedule::Fit& fit) { return fit.schedule.seconds; });
  return out;
}

Result<Plan> fit_budget(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
                        const PlanOptions& options, Bytes budget, PlanSummary& summary,
                        const std::vector<schedule::Fit>* candidates) {
  return BudgetFitter(graph, mapped, options, budget, summary, candidates).run();
}

}  // namespace plimsoll::plan
