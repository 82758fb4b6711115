#include "plimsoll/schedule/fit.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/check.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/schedule/bounds.h"
#include "plimsoll/schedule/construct.h"
#include "plimsoll/schedule/improve.h"
#include "plimsoll/schedule/order.h"
#include "plimsoll/schedule/problem.h"
#include "plimsoll/schedule/replay.h"
#include "plimsoll/schedule/retention.h"
#include "plimsoll/schedule/script.h"
#include "plimsoll/schedule/segments.h"

namespace plimsoll::schedule {
namespace {

struct Candidate {
  Schedule schedule;
  std::vector<Index> order;
};

bool faster(const Schedule& a, const Schedule& b) {
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  return a.peak_bytes < b.peak_bytes;
}

Script plain_script(const std::vector<Index>& order) {
  Script script;
  for (Index task : order) script.steps.push_back({ScriptStep::Kind::kRun, task});
  return script;
}

bool copies(const Script& script) {
  return std::any_of(script.steps.begin(), script.steps.end(), [](const ScriptStep& step) {
    return step.kind == ScriptStep::Kind::kSendOut || step.kind == ScriptStep::Kind::kBringIn;
  });
}

constexpr Index kFreshLimit = 5000;  // letting go of everything over the budget takes too long beyond

constexpr double kHopeless = 20;     // times keep-all: not worth building
constexpr double kGrace = 0.1;
constexpr double kAfterwards = 0.3;  // seconds for saying what would have been possible
constexpr double kRoundSeconds = 3;  // then the best of all threads is shared

// How far a search may go: by the clock, or by counts when it has to be repeatable.
struct Effort {
  bool counted = false;
  double seconds = 0;         // of the whole, by the clock
  std::int64_t restarts = 0;  // counted
  std::int64_t moves = 0;
};

class Fitter {
 public:
  Fitter(const Workload& workload, const FitOptions& options)
      : options_(options),
        problem_(workload, options.remedies, options.copies),
        at_home_(workload, without_swap(options.remedies), options.copies),
        given_(given_sequence(problem_)),
        turn_(turn_of(workload, problem_)),
        kept_{link(problem_, plain_script(given_.order)), given_.order} {}

  const Problem& problem() const { return problem_; }
  const Candidate& keep_all() const { return kept_; }

  // The best schedule found within `budget`, or none. `start` may hold one from a larger budget.
  std::optional<Candidate> search(Bytes budget, const Effort& effort, std::uint64_t seed) {
    budget_ = budget.value;
    effort_ = effort;
    watch_ = Stopwatch();
    best_.reset();
    if (kept_.schedule.peak_bytes <= budget) return kept_;
    first_plan(seed);
    choose_orders(seed);
    for (const Sequence& sequence : orders_) consider(plain_script(sequence.order), sequence.order);
    if (optimal()) return best_;
    cut_segments();
    construct(seed);
    if (!stopped() && searchable()) improve_all(seed);
    return best_;
  }

  bool optimal() const {
    return best_ && best_->schedule.seconds <= problem_.total_seconds * (1 + 1e-12);
  }

  // The smallest budget between a failed one and keep-all at which one construction succeeds.
  Bytes smallest_found(Bytes failed, Bytes works) {
    Construct builder(problem_, given_, options_.seed);
    std::int64_t low = failed.value - 1, high = works.value;
    const Stopwatch watch;
    const auto in_time = [&] { return options_.deterministic || watch.seconds() < kAfterwards; };
    for (int i = 0; i < 24 && high - low > high / 200 && in_time(); ++i) {
      const std::int64_t middle = low + (high - low) / 2;
      ConstructSettings settings;
      settings.budget = middle;
      settings.give_up_seconds = kHopeless * problem_.total_seconds;
      settings.stop = [&] { return !in_time(); };
      if (builder.run(settings)) {
        high = std::min(middle, link(problem_, builder.script()).peak_bytes.value);
      } else {
        low = middle;
      }
    }
    return Bytes(high);
  }

 private:
  static Remedies without_swap(Remedies remedies) {
    remedies.swap = false;
    return remedies;
  }

  bool searchable() const {
    return problem_.tasks > 1 &&
           static_cast<std::int64_t>(problem_.values) * problem_.tasks <= kRetentionLimit;
  }
  // The deadline, with a little on top so that even a deadline of nothing gives a plan.
  bool out_of_time() const {
    return stopped() || (!effort_.counted && watch_.seconds() > effort_.seconds + kGrace);
  }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  void consider(const Script& script, const std::vector<Index>& order) {
    Schedule schedule = link(problem_, script);
    if (schedule.peak_bytes.value > budget_) return;
    const std::lock_guard lock(mutex_);
    if (best_ && !faster(schedule, best_->schedule)) return;
    best_ = Candidate{std::move(schedule), order};
    if (options_.on_better) {
      options_.on_better({best_->schedule.seconds, best_->schedule.peak_bytes, watch_.seconds()});
    }
  }

  void choose_orders(std::uint64_t seed) {
    orders_.clear();
    if (options_.order == OrderChoice::kList) {
      orders_.emplace_back(problem_, list_order(problem_));
      return;
    }
    orders_.push_back(given_);
    if (options_.order == OrderChoice::kGiven) return;
    Random random(seed);
    orders_.emplace_back(problem_, polished(given_.order, 0.1, random));
    orders_.emplace_back(problem_, polished(list_order(problem_), 0.2, random));
  }

  // Polishing takes its swaps in portions, so that it can be cut at a share of the deadline.
  std::vector<Index> polished(std::vector<Index> order, double share, Random& random) {
    constexpr std::int64_t kPortion = 100'000;
    std::int64_t swaps = effort_.counted ? std::min<std::int64_t>(400LL * problem_.tasks, 4'000'000)
                                         : 20'000LL * problem_.tasks;
    while (swaps > 0 && !stopped() &&
           (effort_.counted || watch_.seconds() <= share * effort_.seconds)) {
      order = lower_order(problem_, std::move(order), budget_, std::min(swaps, kPortion), random);
      swaps -= kPortion;
    }
    return order;
  }

  void first_plan(std::uint64_t seed) {
    Construct builder(problem_, given_, seed);
    ConstructSettings settings;
    settings.budget = budget_;
    settings.give_up_seconds = kHopeless * problem_.total_seconds;
    settings.stop = [this] { return out_of_time(); };
    if (builder.run(settings)) consider(builder.script(), given_.order);
  }

  void cut_segments() {
    if (!options_.remedies.recompute) return;
    std::int64_t tried = 0;
    const auto stop = [&] {
      if (stopped()) return true;
      return effort_.counted ? ++tried > effort_.restarts : watch_.seconds() > 0.25 * effort_.seconds;
    };
    try_segments(problem_, turn_, budget_, stop,
                 [&](const Script& script) { consider(script, given_.order); });
  }

  // Restarts with changed prices, each from those of the best run. The first run of every order has
  // them as they are. Either all prices are blurred, or those of a few values that had to leave are
  // changed for good: dearer or cheaper to let go, or to swap. The latter is a local search over the
  // gaps with every mode in it, judged by the makespan.
  void construct(std::uint64_t seed) {
    Random random(seed * 7919 + 1);
    ConstructSettings good;
    good.budget = budget_;
    good.stop = [this] { return out_of_time(); };
    good.weights.assign(static_cast<std::size_t>(problem_.values), 1.0);
    if (options_.remedies.swap) good.swap_weights = good.weights;
    std::vector<Index> left;
    double best = std::numeric_limits<double>::infinity();
    Construct builder(problem_, orders_.front(), seed);
    std::int64_t fruitless = 0;
    std::size_t favourite = 0;
    const double share = searchable() ? (options_.remedies.swap ? 0.6 : 0.12) : 1.0;
    const double until =
        watch_.seconds() +
        std::min(share * (effort_.seconds - watch_.seconds()),
                 options_.remedies.swap || !searchable() ? effort_.seconds : kRoundSeconds);
    for (std::int64_t run = 0;; ++run) {
      const bool over = effort_.counted
                            ? run >= effort_.restarts
                            : out_of_time() || (run >= (best_ ? 1 : 3) && watch_.seconds() > until);
      if (over || stopped() || (run > 40 && fruitless > 4000)) break;
      const bool first = static_cast<std::size_t>(run) < orders_.size();
      const std::size_t which = first ? static_cast<std::size_t>(run)
                                : random.chance(0.2)
                                    ? static_cast<std::size_t>(random.below(std::ssize(orders_)))
                                    : favourite;
      ConstructSettings settings = good;
      settings.give_up_seconds =
          std::min(1.2 * best, kHopeless * problem_.total_seconds);
      if (!first && !left.empty() && random.chance(options_.remedies.swap ? 0.7 : 0.3)) {
        change_some(settings, left, random);
      } else if (!first) {
        blur(settings, random);
      }
      builder.set_sequence(orders_[which]);
      ++fruitless;
      if (!builder.run(settings) || builder.seconds() >= best) continue;
      best = builder.seconds();
      good = std::move(settings);
      left = builder.left();
      favourite = which;
      fruitless = 0;
      consider(builder.script(), orders_[which].order);
    }
  }

  static void blur(ConstructSettings& settings, Random& random) {
    if (random.chance(0.5)) settings.alpha = 0.3 + 1.5 * random.uniform();
    settings.copy_weight = random.chance(0.3) ? 0 : random.uniform();
    const double spread = 0.05 + 0.8 * random.uniform() * random.uniform();
    for (double& weight : settings.weights) weight *= std::exp((random.uniform() * 2 - 1) * spread);
  }

  static void change_some(ConstructSettings& settings, const std::vector<Index>& left,
                          Random& random) {
    for (std::int64_t i = 1 + random.below(6); i > 0; --i) {
      const auto v = static_cast<std::size_t>(
          left[static_cast<std::size_t>(random.below(std::ssize(left)))]);
      const bool swap = !settings.swap_weights.empty() && random.chance(0.5);
      (swap ? settings.swap_weights : settings.weights)[v] *= std::exp(4 * random.uniform() - 2);
    }
  }

  // Rounds of annealing on all threads, each from the best so far; but some of the first round start
  // from keep-all and let go what is over, which is better where little has to go.
  void improve_all(std::uint64_t seed) {
    const int workers = std::max(1, effort_.counted ? 1 : options_.threads);
    const double begin = effort_.counted ? 0 : watch_.seconds();
    const int rounds = std::max(4, static_cast<int>((effort_.seconds - begin) / kRoundSeconds));
    for (int round = 0; round < rounds && !stopped() && !optimal(); ++round) {
      const double from = begin + (effort_.seconds - begin) * round / rounds;
      const double to = begin + (effort_.seconds - begin) * (round + 1) / rounds;
      std::vector<std::thread> threads;
      for (int k = 0; k < workers; ++k) {
        const std::uint64_t own = seed + 101 * static_cast<std::uint64_t>(round * workers + k + 1);
        const bool fresh = round == 0 && k > 0;
        const bool priced = (round + k) % 2 == 0;
        const auto work = [=, this] { improve_once(own, from, to, fresh, priced); };
        if (k + 1 < workers)
          threads.emplace_back(work);
        else
          work();
      }
      for (std::thread& thread : threads) thread.join();
    }
  }

  Retention starting_point(std::uint64_t seed, bool fresh) {
    const std::lock_guard lock(mutex_);
    if (best_ && (!fresh || problem_.tasks > kFreshLimit)) {
      const Script script = shorthand(best_->schedule);
      if (!copies(script)) {
        return Retention::from_script(at_home_, Sequence(at_home_, best_->order), script);
      }
    }
    return Retention(at_home_, orders_[seed % orders_.size()].order);
  }

  static Script shorthand(const Schedule& schedule) {
    Script script;
    for (const Action& action : schedule.actions) {
      const auto value = [&] {
        return static_cast<Index>(schedule.instances[action.reads.front().index()].value.value);
      };
      switch (action.kind) {
        case ActionKind::kCompute:
        case ActionKind::kRecompute:
          script.steps.push_back({ScriptStep::Kind::kRun, static_cast<Index>(action.task.value)});
          break;
        case ActionKind::kEncode:
          script.steps.push_back({ScriptStep::Kind::kEncode, value()});
          break;
        case ActionKind::kDecode:
          script.steps.push_back({ScriptStep::Kind::kDecode, value()});
          break;
        case ActionKind::kSendOut:
          script.steps.push_back({ScriptStep::Kind::kSendOut, value()});
          break;
        default:
          break;
      }
    }
    return script;
  }

  void improve_once(std::uint64_t seed, double from, double to, bool fresh, bool priced) {
    std::int64_t asked = 0;
    ImproveSettings settings;
    settings.budget = budget_;
    settings.priced = priced;
    settings.move_operators = options_.order == OrderChoice::kSearch;
    settings.heat = from == 0 || fresh ? 0.006 : 0.003;
    settings.progress = [&] {
      if (stopped()) return 1.0;
      if (effort_.counted)
        return static_cast<double>(asked++) /
               static_cast<double>(std::max<std::int64_t>(1, effort_.moves));
      return (watch_.seconds() - from) / std::max(1e-9, to - from);
    };
    const Improved improved = improve(starting_point(seed, fresh), at_home_, seed, settings);
    if (improved.found) consider(improved.script, improved.order);
  }

  const FitOptions& options_;
  Problem problem_;
  Problem at_home_;  // the same without swap: what the local search works on
  Sequence given_;
  Index turn_;  // the first task of the backward half
  Candidate kept_;
  std::int64_t budget_ = 0;
  Effort effort_;
  Stopwatch watch_;
  std::mutex mutex_;
  std::optional<Candidate> best_;
  std::vector<Sequence> orders_;
};

Fit finish(const Workload& workload, const FitOptions& options, Fitter& fitter, Candidate candidate,
           const Schedule& kept, Bytes budget, double spent) {
  Fit fit;
  fit.schedule = std::move(candidate.schedule);
  for (Index task : candidate.order) fit.order.push_back(TaskId(static_cast<std::size_t>(task)));
  fit.keep_all_bytes = kept.peak_bytes;
  fit.keep_all_seconds = kept.seconds;
  fit.floor = floor_of(workload, options.remedies);
  const Sequence sequence(fitter.problem(), candidate.order);
  fit.bound_seconds =
      kept.seconds + cover_bound(fitter.problem(), sequence, budget.value,
                                 std::max(0.0, fit.schedule.seconds - kept.seconds));
  fit.optimal = fit.schedule.seconds <= fit.bound_seconds * (1 + 1e-9);
  fit.seconds_spent = spent;
  return fit;
}

tl::unexpected<Error> does_not_fit(const Workload& workload, Bytes budget, const Floor& floor) {
  std::string wall;
  for (std::size_t i = 0; i < floor.wall.size() && i < 4; ++i) {
    wall += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", workload.value(floor.wall[i]).name,
                        human(workload.value(floor.wall[i]).bytes));
  }
  const std::string where = floor.task.valid()
                                ? fmt::format("task '{}' alone", workload.task(floor.task).name)
                                : "what must be kept";
  return fail(ErrorCode::kDoesNotFit,
              "{} bytes is too little: {} needs {} ({}); no plan can do with less than {}", budget,
              where, human(floor.bytes), wall, floor.bytes);
}

Effort counted_effort(const Problem& problem) {
  Effort effort;
  effort.counted = true;
  effort.restarts = std::clamp<std::int64_t>(60'000 / std::max<Index>(1, problem.tasks), 4, 400);
  effort.moves = std::clamp<std::int64_t>(30'000 / std::max<Index>(1, problem.tasks), 8, 100);
  return effort;
}

constexpr int kRungs = 40;
constexpr int kTimedRungs = 16;

// One candidate per rung of a ladder that depends on the workload only. Counted work where it has to
// be repeatable, else an even share of the deadline for every rung.
std::vector<Candidate> climb(Fitter& fitter, const FitOptions& options, const Schedule& kept,
                             Bytes floor) {
  const Stopwatch watch;
  std::vector<Candidate> candidates;
  candidates.push_back(fitter.keep_all());
  Effort effort = counted_effort(fitter.problem());
  effort.counted = options.deterministic;
  const int rungs = options.deterministic ? kRungs : kTimedRungs;
  for (int rung = 0; rung < rungs; ++rung) {
    const std::int64_t span = kept.peak_bytes.value - floor.value;
    const Bytes budget(kept.peak_bytes.value - span / rungs * (rung + 1));
    effort.seconds = (options.deadline_seconds - watch.seconds()) / (rungs - rung);
    auto found = fitter.search(budget, effort, options.seed);
    if (found) candidates.push_back(std::move(*found));
    if (options.stop != nullptr && options.stop->load()) break;
  }
  return candidates;
}

const Candidate* fastest_within(const std::vector<Candidate>& candidates, Bytes budget) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.schedule.peak_bytes > budget) continue;
    if (best == nullptr || faster(candidate.schedule, best->schedule)) best = &candidate;
  }
  return best;
}

}  // namespace

double Fit::overhead() const {
  return keep_all_seconds > 0 ? schedule.seconds / keep_all_seconds - 1 : 0;
}

double Fit::bound_overhead() const {
  return keep_all_seconds > 0 ? bound_seconds / keep_all_seconds - 1 : 0;
}

Schedule keep_all(const Workload& workload) {
  const Problem problem(workload, Remedies{}, CopyRates{});
  return link(problem, plain_script(given_sequence(problem).order));
}

Bytes smallest_found(const Workload& workload, const FitOptions& options) {
  Fitter fitter(workload, options);
  const Bytes kept = fitter.keep_all().schedule.peak_bytes;
  return fitter.smallest_found(floor_of(workload, options.remedies).bytes, kept);
}

Result<Fit> fit(const Workload& workload, const FitOptions& options) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  const Stopwatch watch;
  Fitter fitter(workload, options);
  const Schedule& kept = fitter.keep_all().schedule;
  const Floor floor = floor_of(workload, options.remedies);
  if (options.budget < floor.bytes) return does_not_fit(workload, options.budget, floor);
  std::optional<Candidate> found;
  if (options.deterministic) {
    const std::vector<Candidate> candidates = climb(fitter, options, kept, floor.bytes);
    if (const Candidate* best = fastest_within(candidates, options.budget)) found = *best;
  } else {
    Effort effort;
    effort.seconds = options.deadline_seconds;
    found = fitter.search(options.budget, effort, options.seed);
  }
  if (!found) {
    const Bytes smallest = fitter.smallest_found(options.budget, kept.peak_bytes);
    return fail(
        ErrorCode::kNoAnswer,
        "no plan found within {} bytes in the time given; the smallest found needs {} bytes, "
        "and {} bytes are needed by any plan",
        options.budget, smallest, floor.bytes);
  }
  return finish(workload, options, fitter, std::move(*found), kept, options.budget,
                watch.seconds());
}

Result<std::vector<Fit>> ladder(const Workload& workload, const FitOptions& options) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  const Stopwatch watch;
  FitOptions counted = options;
  counted.deterministic = true;
  Fitter fitter(workload, counted);
  const Schedule& kept = fitter.keep_all().schedule;
  const Floor floor = floor_of(workload, options.remedies);
  if (options.budget < floor.bytes) return does_not_fit(workload, options.budget, floor);
  std::vector<Candidate> candidates = climb(fitter, counted, kept, floor.bytes);
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return faster(a.schedule, b.schedule);
  });
  std::vector<Fit> out;
  for (Candidate& candidate : candidates) {
    if (candidate.schedule.peak_bytes > options.budget) continue;
    out.push_back(finish(workload, options, fitter, std::move(candidate), kept, options.budget,
                         watch.seconds()));
  }
  return out;
}

Result<std::vector<Fit>> sweep(const Workload& workload, const FitOptions& options, int points) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  const Stopwatch watch;
  Fitter fitter(workload, options);
  const Schedule& kept = fitter.keep_all().schedule;
  const Floor floor = floor_of(workload, options.remedies);
  const std::vector<Candidate> candidates = climb(fitter, options, kept, floor.bytes);
  std::vector<Fit> curve;
  const std::int64_t span = kept.peak_bytes.value - floor.bytes.value;
  for (int i = 0; i < points; ++i) {
    const Bytes budget(kept.peak_bytes.value - span / std::max(1, points) * i);
    const Candidate* best = fastest_within(candidates, budget);
    if (best == nullptr) break;
    if (!curve.empty() && curve.back().schedule.peak_bytes == best->schedule.peak_bytes) continue;
    curve.push_back(finish(workload, options, fitter, *best, kept, budget, watch.seconds()));
  }
  return curve;
}

}  // namespace plimsoll::schedule
