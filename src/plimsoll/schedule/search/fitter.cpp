#include "plimsoll/schedule/search/fitter.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <thread>

#include "plimsoll/schedule/search/gap_search.h"
#include "plimsoll/schedule/search/improve.h"
#include "plimsoll/schedule/search/order.h"
#include "plimsoll/schedule/search/replay.h"
#include "plimsoll/schedule/search/restarts.h"
#include "plimsoll/schedule/search/segments.h"

namespace plimsoll::schedule {
namespace {

// Letting go of everything over the budget takes too long beyond.
constexpr Index kFreshLimit = 5000;
// Times keep-all, with every copy there is to make.
constexpr double kThrashing = 3;  // a walk that evicts what it needs next
constexpr double kHopeless = 20;  // not worth building even if nothing else is found
constexpr double kGrace = 0.1;
constexpr std::size_t kRunnersUp = 8;
constexpr double kAfterwards = 0.3;      // seconds for saying what would have been possible
constexpr double kRoundSeconds = 3;      // then the best of all threads is shared
constexpr double kLongRoundTasks = 400;  // from so many on; fewer take less
constexpr double kShortestRound = 0.08;
// Shares of what is left of the deadline, where the steps after it can be taken too.
constexpr double kSegmentShare = 0.15;  // for plans by segments, of either order
constexpr double kRestartShare = 0.12;
constexpr double kDesperateShare = 0.05;  // for walks of any length, as long as there is no plan
constexpr double kFindShare = 0.5;        // for intervals alone, where walks only thrash
// Starting temperatures of the priced search, in times of a mean task: what settles most graphs is
// too cold to leave plans of small ones that make nearly everything again.
constexpr double kPricedHeat = 0.3;
constexpr double kHot = 4;
constexpr Index kHotTasks = 200;
constexpr double kHomeShare = 0.3;  // for intervals without copies, where values may be swapped

Remedies without_swap(Remedies remedies) {
  remedies.swap = false;
  return remedies;
}

bool copies(const Script& script) {
  return std::any_of(script.steps.begin(), script.steps.end(), [](const ScriptStep& step) {
    return step.kind == ScriptStep::Kind::kSendOut || step.kind == ScriptStep::Kind::kBringIn;
  });
}

Script shorthand(const Schedule& schedule) {
  Script script;
  for (const Action& action : schedule.actions) {
    const auto note = [&](ScriptStep::Kind kind) {
      const Instance& read = schedule.instances[action.reads.front().index()];
      script.steps.push_back({kind, static_cast<Index>(read.value.value)});
    };
    switch (action.kind) {
      case ActionKind::kCompute:
      case ActionKind::kRecompute:
        script.steps.push_back({ScriptStep::Kind::kRun, static_cast<Index>(action.task.value)});
        break;
      case ActionKind::kEncode:
        note(ScriptStep::Kind::kEncode);
        break;
      case ActionKind::kDecode:
        note(ScriptStep::Kind::kDecode);
        break;
      case ActionKind::kSendOut:
        note(ScriptStep::Kind::kSendOut);
        break;
      case ActionKind::kBringIn:
        note(ScriptStep::Kind::kBringIn);
        break;
      case ActionKind::kDrop:
        break;
    }
  }
  return script;
}

}  // namespace

bool faster(const Schedule& a, const Schedule& b) {
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  return a.peak_bytes < b.peak_bytes;
}

Script plain_script(const std::vector<Index>& order) {
  Script script;
  for (Index task : order) script.steps.push_back({ScriptStep::Kind::kRun, task});
  return script;
}

Fitter::Fitter(const Workload& workload, const FitOptions& options)
    : options_(options),
      problem_(workload, options.remedies, options.copies),
      at_home_(workload, without_swap(options.remedies), options.copies),
      given_(given_sequence(problem_)),
      turn_(turn_of(workload, problem_)),
      kept_{link(problem_, plain_script(given_.order)), given_.order} {
  if (options.order != OrderChoice::kSearch) return;
  Sequence mirrored(problem_, mirror_order(problem_, turn_));
  if (mirrored.order != given_.order) mirrored_ = std::move(mirrored);
}

std::optional<Candidate> Fitter::search(Bytes budget, const Effort& effort, std::uint64_t seed) {
  budget_ = budget.value;
  effort_ = effort;
  watch_ = Stopwatch();
  best_.reset();
  runners_up_.clear();
  if (kept_.schedule.peak_bytes <= budget) return kept_;
  first_plan(seed);
  choose_orders(seed);
  for (const Sequence& sequence : orders_) consider(plain_script(sequence.order), sequence.order);
  if (optimal()) return best_;
  cut_segments();
  restart(seed, kThrashing, kRestartShare);
  const bool walkable = best_.has_value();
  if (!walkable) restart(seed + 1, kHopeless, kDesperateShare);
  const bool swaps = options_.remedies.swap;
  if (searchable()) {
    if (!walkable) {
      in_rounds(seed + 7, 1, until(swaps ? kHomeShare / 2 : kFindShare),
                [this](std::uint64_t own, int, double from, double to) {
                  improve_once(own, true, true, from, to);
                });
    }
    const double end = swaps ? until(kHomeShare) : effort_.seconds;
    in_rounds(seed, rounds_until(end), end,
              [this](std::uint64_t own, int turn, double from, double to) {
                const bool again = problem_.tasks <= kHotTasks && turn % 4 == 2;
                improve_once(own, turn == 1 || turn == 2 || again, turn % 2 == 0, from, to);
              });
  }
  if (swaps) {
    in_rounds(seed + 1, rounds_until(effort_.seconds), effort_.seconds,
              [this](std::uint64_t own, int turn, double from, double to) {
                search_gaps_once(own, turn % 2 == 0, from, to);
              });
  }
  return best_;
}

std::optional<Candidate> Fitter::task_by_task(Bytes budget, Bytes stays) {
  Construct walk(problem_, given_, options_.seed);
  ConstructSettings settings;
  settings.budget = budget.value;
  settings.stays = stays.value;
  settings.give_up_seconds = std::numeric_limits<double>::infinity();
  settings.stop = [this] { return stopped(); };
  if (!walk.run(settings)) return std::nullopt;
  Schedule schedule = link(problem_, walk.script());
  if (schedule.peak_bytes > budget) return std::nullopt;
  return Candidate{std::move(schedule), given_.order};
}

std::vector<Schedule> Fitter::take_runners_up() {
  std::vector<Schedule> out(std::make_move_iterator(runners_up_.rbegin()),
                            std::make_move_iterator(runners_up_.rend()));
  runners_up_.clear();
  return out;
}

bool Fitter::optimal() const {
  return best_ && best_->schedule.seconds <= problem_.total_seconds * (1 + 1e-12);
}

bool Fitter::searchable() const {
  return problem_.tasks > 1 &&
         static_cast<std::int64_t>(problem_.values) * problem_.tasks <= kRetentionLimit;
}

// The deadline, with a little on top so that even a deadline of nothing gives a plan.
bool Fitter::out_of_time() const {
  return stopped() || (!effort_.counted && watch_.seconds() > effort_.seconds + kGrace);
}

double Fitter::until(double share) const {
  const double now = watch_.seconds();
  return now + share * (effort_.seconds - now);
}

double Fitter::longest(double times) const {
  return times * (problem_.total_seconds + problem_.copy_seconds);
}

Bytes Fitter::smallest_found(Bytes failed, Bytes works) {
  std::int64_t smallest = works.value;
  halve(failed.value, works.value, given_, kHopeless, kAfterwards, [&](const Script& script) {
    smallest = std::min(smallest, link(problem_, script).peak_bytes.value);
    return smallest;
  });
  return Bytes(smallest);
}

// Walks at budgets between one that fails and one that works, halving the range each time. `found`
// says what a plan really needs.
void Fitter::halve(std::int64_t low, std::int64_t high, const Sequence& sequence, double hopeless,
                   double seconds, const std::function<std::int64_t(const Script&)>& found) {
  Construct walk(problem_, sequence, options_.seed);
  const Stopwatch watch;
  const auto over = [&] { return !options_.deterministic && watch.seconds() > seconds; };
  for (int i = 0; i < 24 && high - low > high / 200 && !over(); ++i) {
    const std::int64_t middle = low + (high - low) / 2;
    ConstructSettings settings;
    settings.budget = middle;
    settings.give_up_seconds = longest(hopeless);
    settings.stop = over;
    if (walk.run(settings)) {
      high = std::min(middle, found(walk.script()));
    } else {
      low = middle;
    }
  }
}

void Fitter::consider(const Script& script, const std::vector<Index>& order) {
  Schedule schedule = link(problem_, script);
  if (schedule.peak_bytes.value > budget_) return;
  const std::lock_guard lock(mutex_);
  if (best_ && !faster(schedule, best_->schedule)) return;
  if (best_) runners_up_.push_back(std::move(best_->schedule));
  if (runners_up_.size() > kRunnersUp) runners_up_.pop_front();
  best_ = Candidate{std::move(schedule), order};
  if (options_.on_better) {
    options_.on_better({best_->schedule.seconds, best_->schedule.peak_bytes, watch_.seconds()});
  }
}

void Fitter::first_plan(std::uint64_t seed) {
  Construct builder(problem_, given_, seed);
  ConstructSettings settings;
  settings.budget = budget_;
  settings.give_up_seconds = longest(kThrashing);
  settings.stop = [this] { return out_of_time(); };
  if (builder.run(settings)) consider(builder.script(), given_.order);
}

void Fitter::choose_orders(std::uint64_t seed) {
  orders_.clear();
  if (options_.order == OrderChoice::kList) {
    orders_.emplace_back(problem_, list_order(problem_));
    return;
  }
  orders_.push_back(given_);
  if (options_.order == OrderChoice::kGiven) return;
  if (std::vector<Index> by_sink = sink_order(problem_); by_sink != given_.order) {
    orders_.emplace_back(problem_, std::move(by_sink));
  }
  if (mirrored_) orders_.push_back(*mirrored_);
  Random random(seed);
  orders_.emplace_back(problem_, polished(given_.order, 0.1, random));
  orders_.emplace_back(problem_, polished(list_order(problem_), 0.2, random));
}

// Polishing takes its swaps in portions, so that it can be cut at a share of the deadline.
std::vector<Index> Fitter::polished(std::vector<Index> order, double share, Random& random) {
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

// By the order that finishes one sink after the other first: where it differs from the given one,
// sums over time would stay alive side by side.
void Fitter::cut_segments() {
  if (!options_.remedies.recompute) return;
  if (mirrored_) {
    cut_segments(renumbered(problem_, *mirrored_), mirrored_->order, until(kSegmentShare));
  }
  cut_segments(problem_, given_.order, until(kSegmentShare));
}

// `problem` has its tasks numbered by their places in `order`.
void Fitter::cut_segments(const Problem& problem, const std::vector<Index>& order, double end) {
  std::int64_t tried = 0;
  const auto stop = [&] {
    if (stopped()) return true;
    return effort_.counted ? ++tried > effort_.restarts : watch_.seconds() > end;
  };
  try_segments(problem, turn_, budget_, stop, [&](Script script) {
    for (ScriptStep& step : script.steps) step.id = order[at(step.id)];
    consider(script, order);
  });
}

// Walks as long as `hopeless` times keep-all, for a share of what is left of the deadline.
void Fitter::restart(std::uint64_t seed, double hopeless, double share) {
  const bool last = !searchable() && !options_.remedies.swap && (best_ || hopeless == kHopeless);
  const double end =
      last ? effort_.seconds : std::min(until(share), watch_.seconds() + kRoundSeconds);
  RestartSettings how;
  how.start.budget = budget_;
  how.start.stop = [this, end] {
    return out_of_time() || (!effort_.counted && watch_.seconds() > end + kGrace);
  };
  how.start.weights.assign(at(problem_.values), 1.0);
  if (options_.remedies.swap) how.start.swap_weights = how.start.weights;
  how.hopeless_seconds = longest(hopeless);
  how.over = [this, end](std::int64_t run) {
    if (stopped()) return true;
    if (effort_.counted) return run >= effort_.restarts;
    return out_of_time() || (run >= (best_ ? 1 : 3) && watch_.seconds() > end);
  };
  how.on_better = [this](const Construct& walk, std::size_t order) {
    consider(walk.script(), orders_[order].order);
  };
  Restarted found = schedule::restart(problem_, orders_, seed, how);
  good_ = std::move(found.settings);
  favourite_ = found.order;
}

int Fitter::workers() const {
  return std::max(1, effort_.counted ? 1 : options_.threads);
}

int Fitter::rounds_until(double end) const {
  const double size = std::min(1.0, problem_.tasks / kLongRoundTasks);
  const double one = std::max(kShortestRound, kRoundSeconds * size * size);
  return std::max(4, static_cast<int>((end - watch_.seconds()) / one));
}

// Rounds on all threads up to `end`, each from what the others have found so far.
void Fitter::in_rounds(std::uint64_t seed, int rounds, double end, const Work& work) {
  const double begin = effort_.counted ? 0 : watch_.seconds();
  for (int round = 0; round < rounds && !stopped() && !optimal(); ++round) {
    const double from = begin + (end - begin) * round / rounds;
    const double to = begin + (end - begin) * (round + 1) / rounds;
    std::vector<std::thread> threads;
    for (int k = 0; k < workers(); ++k) {
      const int turn = round * workers() + k;
      const std::uint64_t own = seed + 101 * static_cast<std::uint64_t>(turn + 1);
      const auto one = [&work, own, turn, from, to] { work(own, turn, from, to); };
      if (k + 1 < workers())
        threads.emplace_back(one);
      else
        one();
    }
    for (std::thread& thread : threads) thread.join();
  }
}

std::function<double()> Fitter::progress_of(double from, double to, std::int64_t counts) const {
  return [this, from, to, counts, asked = std::int64_t{0}]() mutable {
    if (stopped()) return 1.0;
    if (effort_.counted)
      return static_cast<double>(asked++) / static_cast<double>(std::max<std::int64_t>(1, counts));
    return (watch_.seconds() - from) / std::max(1e-9, to - from);
  };
}

// The plan where a round begins: the best so far, or keep-all, which is better where little has to
// go and where the walks found only plans that make things again many times.
Retention Fitter::starting_point(std::uint64_t seed, bool fresh) {
  const std::lock_guard lock(mutex_);
  if (best_ && (!fresh || problem_.tasks > kFreshLimit)) {
    const Script script = shorthand(best_->schedule);
    if (!copies(script)) {
      return Retention::from_script(at_home_, Sequence(at_home_, best_->order), script);
    }
  }
  return Retention(at_home_, orders_[seed % orders_.size()].order);
}

void Fitter::improve_once(std::uint64_t seed, bool fresh, bool priced, double from, double to) {
  ImproveSettings settings;
  settings.budget = budget_;
  settings.priced = priced;
  settings.move_operators = options_.order == OrderChoice::kSearch;
  const bool hot = fresh && problem_.tasks <= kHotTasks;
  if (priced)
    settings.heat = hot ? kHot : kPricedHeat;
  else
    settings.heat = from == 0 || fresh ? 0.006 : 0.003;
  settings.progress = progress_of(from, to, effort_.moves);
  const Improved improved = improve(starting_point(seed, fresh), at_home_, seed, settings);
  if (improved.found) consider(improved.script, improved.order);
}

void Fitter::search_gaps_once(std::uint64_t seed, bool from_best, double from, double to) {
  ConstructSettings start = good_;
  start.stop = [this] { return out_of_time(); };
  start.give_up_seconds = longest(kHopeless);
  Sequence sequence = orders_[favourite_];
  {
    const std::lock_guard lock(mutex_);
    if (best_) start.give_up_seconds = 2 * best_->schedule.seconds;
    if (best_ && from_best) {
      sequence = Sequence(problem_, best_->order);
      start.gaps = choices_of(problem_, sequence, shorthand(best_->schedule));
    }
  }
  GapSearchSettings settings;
  settings.progress = progress_of(from, to, effort_.restarts);
  settings.on_better = [&](const Construct& walk) { consider(walk.script(), sequence.order); };
  search_gaps(problem_, sequence, std::move(start), seed, settings);
}

}  // namespace plimsoll::schedule
