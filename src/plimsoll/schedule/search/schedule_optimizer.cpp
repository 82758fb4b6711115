#include "plimsoll/schedule/search/schedule_optimizer.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <thread>

#include "plimsoll/schedule/search/beam_order.h"
#include "plimsoll/schedule/search/free_swaps.h"
#include "plimsoll/schedule/search/gap_search.h"
#include "plimsoll/schedule/search/interval_search.h"
#include "plimsoll/schedule/search/order.h"
#include "plimsoll/schedule/search/replay.h"
#include "plimsoll/schedule/search/restarts.h"
#include "plimsoll/schedule/search/segments.h"

namespace plimsoll::schedule {
namespace {

Remedies without_swap(Remedies remedies) {
  remedies.swap = false;
  return remedies;
}

// Hidden copies cost time on their streams only, so they count for a share of it.
void offer_swaps(Problem& intervals, const Problem& swaps, double weight) {
  for (std::size_t v = 0; v < intervals.bytes.size(); ++v) {
    if (!swaps.swappable[v] || swaps.producer[v] == kNoIndex || intervals.encoding[v] != kNoIndex)
      continue;
    intervals.encoding[v] = kSwapForm;
    intervals.encoded_bytes[v] = 0;
    intervals.encode_seconds[v] = weight * swaps.out_seconds[v];
    intervals.decode_seconds[v] = weight * swaps.in_seconds[v];
  }
}

// What the plan does between copies: swapped values stay.
ActionList without_copies(ActionList list) {
  std::erase_if(list.actions, [](const ListedAction& action) {
    return action.kind == ActionKind::kCopyOut || action.kind == ActionKind::kCopyIn;
  });
  return list;
}

bool copies(const ActionList& list) {
  return std::any_of(list.actions.begin(), list.actions.end(), [](const ListedAction& action) {
    return action.kind == ActionKind::kCopyOut || action.kind == ActionKind::kCopyIn;
  });
}

}  // namespace

bool faster(const Schedule& a, const Schedule& b) {
  if (a.seconds != b.seconds) return a.seconds < b.seconds;
  return a.peak_bytes < b.peak_bytes;
}

Effort counted_effort(const Problem& problem, const SearchOptions& options) {
  const auto share = [&](std::int64_t all, std::int64_t least, std::int64_t most) {
    return std::clamp<std::int64_t>(all / std::max<Index>(1, problem.tasks), least, most);
  };
  Effort effort;
  effort.counted = true;
  effort.restarts = share(options.counted_restarts, options.least_restarts, options.most_restarts);
  effort.moves = share(options.counted_moves, options.least_moves, options.most_moves);
  return effort;
}

ScheduleOptimizer::ScheduleOptimizer(const Workload& workload, const FitOptions& options)
    : options_(options),
      how_(options.search),
      problem_(workload, options.remedies, options.copies),
      no_swap_(workload, without_swap(options.remedies), options.copies),
      given_(given_sequence(problem_)),
      first_backward_(first_backward_task(workload, problem_)),
      kept_{link(problem_, run_in_order(given_.order)), given_.order},
      smallest_(kept_.schedule.peak_bytes) {
  if (options.remedies.swap && how_.on.swap_intervals)
    offer_swaps(no_swap_, problem_, how_.swap_form_weight);
  if (options.order != OrderChoice::kSearch || !how_.on.orders) return;
  std::vector<Index> order;
  for (const TaskId task : options.mirrored) order.push_back(static_cast<Index>(task.value));
  if (order.empty()) order = mirror_order(problem_, first_backward_, how_.order);
  Sequence mirrored(problem_, std::move(order));
  if (mirrored.order != given_.order) mirrored_ = std::move(mirrored);
}

std::optional<Candidate> ScheduleOptimizer::search(Bytes budget, const Effort& effort,
                                                   std::uint64_t seed) {
  budget_ = budget.value;
  effort_ = effort;
  watch_ = Stopwatch();
  best_.reset();
  nearest_.reset();
  segments_fit_ = false;
  runners_up_.clear();
  if (kept_.schedule.peak_bytes <= budget) return kept_;
  first_plan(seed);
  choose_orders(seed);
  for (const Sequence& sequence : orders_) consider(run_in_order(sequence.order), sequence.order);
  if (optimal()) return best_;
  cut_segments();
  restart(seed, how_.thrashing, hurried() * how_.restart_share);
  if (!best_) restart(seed + how_.seeds.long_restarts, how_.hopeless, how_.long_restart_share);
  thrashed_ = walks_thrashed();
  if (intervals_searchable()) search_intervals(seed);
  if (options_.remedies.swap && how_.on.gaps) search_gaps(seed + how_.seeds.gaps);
  return best_;
}

// Where walks only thrash, the first rounds go into the way that needs no plan within the budget.
void ScheduleOptimizer::search_intervals(std::uint64_t seed) {
  const bool swaps = options_.remedies.swap;
  if (thrashed_ && how_.on.priced_intervals) {
    in_rounds(seed + how_.seeds.first_intervals, 1,
              until(swaps ? how_.first_interval_share_swap : how_.first_interval_share),
              [this](std::uint64_t own, int number, double from, double to) {
                // With a poor plan, every other thread goes on from it.
                const bool afresh = number % 2 == 0 || !best_;
                try_intervals(own, number, {.priced = true, .afresh = afresh}, from, to);
              });
  }
  const double end = swaps ? until(how_.interval_share_swap) : effort_.seconds;
  in_rounds(seed, rounds_until(end), end,
            [this](std::uint64_t own, int number, double from, double to) {
              try_intervals(own, number, interval_round(number), from, to);
            });
}

// No plan, or so poor a one that a search afresh may well find a better. Not where segments fit:
// there even a slow plan is near the best. Small graphs are searched afresh in any case, and large
// ones never.
bool ScheduleOptimizer::walks_thrashed() const {
  if (!best_) return true;
  return !segments_fit_ && problem_.tasks > how_.small_graph_tasks &&
         problem_.tasks <= how_.afresh_tasks &&
         best_->schedule.seconds > (1 + how_.poor_walk) * kept_.schedule.seconds;
}

IntervalRound ScheduleOptimizer::interval_round(int number) const {
  const auto first = static_cast<int>(how_.first_rounds.size());
  const auto later = static_cast<int>(how_.later_rounds.size());
  IntervalRound round =
      number < first ? how_.first_rounds[at(number)] : how_.later_rounds[at(number % later)];
  if (thrashed_ && problem_.tasks > how_.small_graph_tasks)
    round = how_.thrashed_rounds[at(number) % how_.thrashed_rounds.size()];
  if (number >= first && problem_.tasks > how_.small_graph_tasks) round.afresh = false;
  if (!how_.on.priced_intervals) round.priced = false;
  if (!how_.on.repaired_intervals) round.priced = true;
  return round;
}

// By turns from the best plan and from the prices of the best restart.
void ScheduleOptimizer::search_gaps(std::uint64_t seed) {
  in_rounds(seed, rounds_until(effort_.seconds), effort_.seconds,
            [this](std::uint64_t own, int number, double from, double to) {
              try_gaps(own, number % 2 == 0, from, to);
            });
}

std::optional<Candidate> ScheduleOptimizer::task_by_task(Bytes budget, Bytes stays) {
  GreedyEvictor walk(problem_, given_, options_.seed, how_.evictor);
  EvictorSettings settings = first_prices(budget.value);
  settings.stays = stays.value;
  settings.give_up_seconds = std::numeric_limits<double>::infinity();
  settings.stop = [this] { return stopped(); };
  if (!walk.run(settings)) return std::nullopt;
  Schedule schedule = link(problem_, walk.action_list());
  if (schedule.peak_bytes > budget) return std::nullopt;
  return Candidate{std::move(schedule), given_.order};
}

std::vector<Schedule> ScheduleOptimizer::take_runners_up() {
  std::vector<Schedule> out(std::make_move_iterator(runners_up_.rbegin()),
                            std::make_move_iterator(runners_up_.rend()));
  runners_up_.clear();
  return out;
}

bool ScheduleOptimizer::optimal() const {
  return best_ && best_->schedule.seconds <= problem_.total_seconds * (1 + 1e-12);
}

bool ScheduleOptimizer::intervals_searchable() const {
  return (how_.on.priced_intervals || how_.on.repaired_intervals) && problem_.tasks > 1 &&
         static_cast<std::int64_t>(problem_.values) * problem_.tasks <= kRetentionLimit;
}

// The deadline, with a little on top so that even a deadline of nothing gives a plan.
bool ScheduleOptimizer::out_of_time() const {
  return stopped() || (!effort_.counted && watch_.seconds() > effort_.seconds + how_.grace_seconds);
}

double ScheduleOptimizer::until(double share) const {
  const double now = watch_.seconds();
  return now + share * (effort_.seconds - now);
}

EvictorSettings ScheduleOptimizer::first_prices(std::int64_t budget) const {
  EvictorSettings settings;
  settings.budget = budget;
  settings.alpha = how_.evictor.alpha;
  settings.copy_weight = how_.evictor.copy_weight;
  settings.weights = options_.weights;
  return settings;
}

double ScheduleOptimizer::longest(double times) const {
  return times * (problem_.total_seconds + problem_.copy_seconds);
}

// Walks at budgets between one that fails and one that works, halving the range each time. What a
// plan really needs may be less than it was allowed.
Bytes ScheduleOptimizer::smallest_found(Bytes failed) {
  const Stopwatch watch;
  if (lowest_.order.empty()) {
    effort_.counted = options_.deterministic;
    effort_.seconds = options_.deadline_seconds;
    find_lowest_order();
  }
  std::int64_t low = failed.value, high = smallest_.value, smallest = high;
  const Sequence& sequence = lowest_.order.empty() ? given_ : lowest_;
  GreedyEvictor walk(problem_, sequence, options_.seed, how_.evictor);
  // Who gave the search milliseconds does not wait long for what comes after it either.
  const double most =
      std::min(how_.smallest_seconds,
               std::max(how_.smallest_at_least, how_.smallest_share * options_.deadline_seconds));
  const auto over = [&] { return !options_.deterministic && watch.seconds() > most; };
  for (int i = 0; i < how_.halvings && high - low > high / how_.halving_resolution && !over();
       ++i) {
    const std::int64_t middle = low + (high - low) / 2;
    EvictorSettings settings = first_prices(middle);
    settings.give_up_seconds = longest(how_.hopeless);
    settings.stop = over;
    if (walk.run(settings)) {
      note_peak(link(problem_, walk.action_list()).peak_bytes);
      smallest = smallest_.value;
      high = std::min(middle, smallest);
    } else {
      low = middle;
    }
  }
  return Bytes(smallest);
}

Bytes ScheduleOptimizer::consider(const ActionList& list, const std::vector<Index>& order) {
  Schedule schedule = link(problem_, list);
  const Bytes peak = schedule.peak_bytes;
  const std::lock_guard lock(mutex_);
  note_peak(peak);
  if (peak.value > budget_) return peak;
  if (best_ && !faster(schedule, best_->schedule)) return peak;
  if (best_) runners_up_.push_back(std::move(best_->schedule));
  if (runners_up_.size() > how_.runners_up) runners_up_.pop_front();
  best_ = Candidate{std::move(schedule), order};
  if (options_.on_better) {
    options_.on_better({best_->schedule.seconds, best_->schedule.peak_bytes, watch_.seconds()});
  }
  return peak;
}

// Nothing where a value is copied that the interval search cannot swap: a source.
std::optional<ActionList> ScheduleOptimizer::with_forms(ActionList list) const {
  for (ListedAction& action : list.actions) {
    if (action.kind != ActionKind::kCopyOut && action.kind != ActionKind::kCopyIn) continue;
    if (no_swap_.encoding[at(action.id)] != kSwapForm) return std::nullopt;
    action.kind = action.kind == ActionKind::kCopyOut ? ActionKind::kEncode : ActionKind::kDecode;
  }
  return list;
}

void ScheduleOptimizer::consider_intervals(const Problem& forms, const ActionList& list,
                                           const std::vector<Index>& order, std::uint64_t seed) {
  const ActionList linked = with_copies(forms, list);
  consider(linked, order);
  if (!copies(linked)) return;
  const Sequence sequence(problem_, order);
  EvictorSettings settings = first_prices(budget_);
  settings.gaps = choices_of(problem_, sequence, linked);
  settings.give_up_seconds = longest(how_.hopeless);
  settings.stop = [this] { return out_of_time(); };
  GreedyEvictor walk(problem_, sequence, seed, how_.evictor);
  if (walk.run(settings)) consider(walk.action_list(), order);
}

void ScheduleOptimizer::note_peak(Bytes peak) {
  smallest_ = std::min(smallest_, peak);
}

void ScheduleOptimizer::first_plan(std::uint64_t seed) {
  GreedyEvictor walk(problem_, given_, seed, how_.evictor);
  EvictorSettings settings = first_prices(budget_);
  settings.give_up_seconds = longest(how_.thrashing);
  settings.stop = [this] { return out_of_time(); };
  if (walk.run(settings)) consider(walk.action_list(), given_.order);
}

void ScheduleOptimizer::choose_orders(std::uint64_t seed) {
  orders_.clear();
  if (options_.order == OrderChoice::kList) {
    orders_.emplace_back(problem_, list_order(problem_, how_.order));
    return;
  }
  orders_.push_back(given_);
  if (options_.order == OrderChoice::kGiven || !how_.on.orders) return;
  if (std::vector<Index> by_sink = sink_order(problem_); by_sink != given_.order) {
    orders_.emplace_back(problem_, std::move(by_sink));
  }
  if (mirrored_) orders_.push_back(*mirrored_);
  find_lowest_order();
  if (!lowest_.order.empty()) orders_.push_back(lowest_);
  Random random(seed);
  const double hurry = hurried();
  orders_.emplace_back(problem_, polished(given_.order, hurry * how_.order.given_until, random));
  orders_.emplace_back(
      problem_, polished(list_order(problem_, how_.order), hurry * how_.order.list_until, random));
  if (!best_ && !lowest_.order.empty())
    orders_.emplace_back(problem_,
                         polished(lowest_.order, hurry * how_.order.lowest_until, random));
}

// Once for all budgets, unless there is time for a much wider beam.
void ScheduleOptimizer::find_lowest_order() {
  const OrderSearchOptions& how = how_.order;
  if (options_.order != OrderChoice::kSearch || !how_.on.orders || !how_.on.beam) return;
  const double bytes = effort_.counted
                           ? how.counted_beam_bytes
                           : how.beam_share * effort_.seconds * how.beam_bytes_per_second;
  const double each = static_cast<double>(std::max<std::int64_t>(1, beam_bytes(problem_)));
  const auto width = static_cast<Index>(std::min(
      bytes / each, static_cast<double>(effort_.counted ? how.counted_beam : how.widest_beam)));
  if (width < how.narrowest_beam || width < 2 * lowest_width_) return;
  std::vector<Index> order = beam_order(problem_, width, [this] { return out_of_time(); });
  if (order.empty()) return;
  lowest_width_ = width;
  const Bytes peak = link(problem_, run_in_order(order)).peak_bytes;
  note_peak(peak);
  if (lowest_.order.empty() || peak <= lowest_peak_) {
    lowest_ = Sequence(problem_, std::move(order));
    lowest_peak_ = peak;
  }
}

// Polishing takes its swaps in portions, so that it can be cut by the clock.
std::vector<Index> ScheduleOptimizer::polished(std::vector<Index> order, double until_share,
                                               Random& random) {
  const OrderSearchOptions& how = how_.order;
  std::int64_t swaps = effort_.counted ? std::min(how.counted_swaps_per_task * problem_.tasks,
                                                  how.most_counted_swaps)
                                       : how.timed_swaps_per_task * problem_.tasks;
  while (swaps > 0 && !stopped() &&
         (effort_.counted || watch_.seconds() <= until_share * effort_.seconds)) {
    order =
        lower_order(problem_, std::move(order), budget_, std::min(swaps, how.portion), random, how);
    swaps -= how.portion;
  }
  return order;
}

// By the order that finishes one sink after the other first: where it differs from the given one,
// sums over time would stay alive side by side.
void ScheduleOptimizer::cut_segments() {
  if (!options_.remedies.recompute || !how_.on.segments) return;
  IntervalPlan lowest;
  Bytes peak = Bytes::max();
  const double share = hurried() * how_.segment_share;
  const auto offer = [&](const ActionList& list, const std::vector<Index>& order) {
    const Bytes own = consider(list, order);
    if (own.value <= budget_) segments_fit_ = true;
    if (best_ || own >= peak) return;
    peak = own;
    lowest.list = list;
    lowest.order = order;
  };
  if (mirrored_)
    cut_segments(renumbered(problem_, *mirrored_), mirrored_->order, until(share), offer);
  cut_segments(problem_, given_.order, until(share), offer);
  if (best_ || lowest.order.empty() || !intervals_searchable()) return;
  Retention start =
      Retention::from_actions(no_swap_, Sequence(no_swap_, lowest.order), lowest.list);
  start.set_limit(budget_);
  lowest.excess = start.excess();
  if (lowest.excess < bytes_over_budget(least_over())) nearest_ = std::move(lowest);
}

// Where walks only thrash, what comes before the interval search is kept short.
double ScheduleOptimizer::hurried() const {
  return best_ ? 1 : how_.hurry;
}

// `problem` has its tasks numbered by their places in `order`.
void ScheduleOptimizer::cut_segments(const Problem& problem, const std::vector<Index>& order,
                                     double end, const OfferPlan& offer) {
  std::int64_t tried = 0;
  const auto stop = [&] {
    if (stopped()) return true;
    ++tried;
    if (effort_.counted) return tried > effort_.restarts;
    return out_of_time() || (watch_.seconds() > end && (best_ || tried > how_.least_segments));
  };
  try_segments(problem, first_backward_, budget_, how_.segments, stop, [&](ActionList list) {
    for (ListedAction& action : list.actions) action.id = order[at(action.id)];
    offer(list, order);
  });
}

// Walks as long as `hopeless` times the no-recompute plan, for a share of what is left of the
// deadline.
void ScheduleOptimizer::restart(std::uint64_t seed, double hopeless, double share) {
  const bool last =
      !intervals_searchable() && !options_.remedies.swap && (best_ || hopeless == how_.hopeless);
  const double end =
      last ? effort_.seconds : std::min(until(share), watch_.seconds() + how_.round_seconds);
  RestartSettings how;
  how.start = first_prices(budget_);
  how.start.stop = [this, end] {
    return out_of_time() || (!effort_.counted && watch_.seconds() > end + how_.grace_seconds);
  };
  if (how.start.weights.empty()) how.start.weights.assign(at(problem_.values), 1.0);
  if (options_.remedies.swap) how.start.swap_weights.assign(at(problem_.values), 1.0);
  how.hopeless_seconds = longest(hopeless);
  how.over = [this, end](std::int64_t run) {
    if (stopped() || !how_.on.restarts) return true;
    if (effort_.counted) return run >= effort_.restarts;
    const std::int64_t least = best_ ? how_.restarts.timed_runs : how_.restarts.timed_runs_at_first;
    return out_of_time() || (run >= least && watch_.seconds() > end);
  };
  how.on_better = [this](const GreedyEvictor& walk, std::size_t order) {
    consider(walk.action_list(), orders_[order].order);
  };
  Restarted found = schedule::restart(problem_, orders_, seed, how_, how);
  good_ = std::move(found.settings);
  favourite_ = found.order;
}

int ScheduleOptimizer::workers() const {
  return std::max(1, effort_.counted ? 1 : options_.threads);
}

int ScheduleOptimizer::rounds_until(double end) const {
  if (effort_.counted) return how_.fewest_rounds;
  const double size = std::min(1.0, problem_.tasks / how_.long_round_tasks);
  const double one = std::max(how_.shortest_round, how_.round_seconds * size * size);
  return std::max(how_.fewest_rounds, static_cast<int>((end - watch_.seconds()) / one));
}

// Rounds on all threads up to `end`, each from what the others have found so far. Counted ones know
// no clock: they go from 0 to 1.
void ScheduleOptimizer::in_rounds(std::uint64_t seed, int rounds, double end,
                                  const Attempt& attempt) {
  const double begin = effort_.counted ? 0 : watch_.seconds();
  if (effort_.counted) end = 1;
  for (int round = 0; round < rounds && !stopped() && !optimal(); ++round) {
    const double from = begin + (end - begin) * round / rounds;
    const double to = begin + (end - begin) * (round + 1) / rounds;
    std::vector<std::thread> threads;
    for (int k = 0; k < workers(); ++k) {
      const int number = round * workers() + k;
      const std::uint64_t own =
          seed + how_.seeds.round_stride * static_cast<std::uint64_t>(number + 1);
      const auto one = [&attempt, own, number, from, to] { attempt(own, number, from, to); };
      if (k + 1 < workers())
        threads.emplace_back(one);
      else
        one();
    }
    for (std::thread& thread : threads) thread.join();
  }
}

std::function<double()> ScheduleOptimizer::progress_of(double from, double to,
                                                       std::int64_t counts) const {
  return [this, from, to, counts, asked = std::int64_t{0}]() mutable {
    if (stopped()) return 1.0;
    if (effort_.counted)
      return static_cast<double>(asked++) / static_cast<double>(std::max<std::int64_t>(1, counts));
    return (watch_.seconds() - from) / std::max(1e-9, to - from);
  };
}

// The plan where an attempt begins: the best so far, or the no-recompute plan, which is better
// where little has to go and where the walks found only plans that recompute things many times.
Retention ScheduleOptimizer::starting_point(std::uint64_t seed, int number, bool afresh,
                                            bool nearest) {
  const std::lock_guard lock(mutex_);
  if (!best_ && nearest && nearest_)
    return Retention::from_actions(no_swap_, Sequence(no_swap_, nearest_->order), nearest_->list);
  if (best_ && (!afresh || problem_.tasks > how_.afresh_tasks)) {
    if (const auto list = with_forms(action_list_of(best_->schedule)))
      return Retention::from_actions(no_swap_, Sequence(no_swap_, best_->order), *list);
  }
  // Where walks were of no use, three of four go from the order with the least to let go.
  const bool least = !best_ || (thrashed_ && problem_.tasks > how_.small_graph_tasks);
  if (least && number % 4 != 3) return Retention(no_swap_, least_over().order);
  return Retention(no_swap_, orders_[seed % orders_.size()].order);
}

// Byte · tasks over the budget, with nothing recomputed.
std::int64_t ScheduleOptimizer::bytes_over_budget(const Sequence& sequence) const {
  std::int64_t sum = 0;
  for (const std::int64_t bytes : bytes_over_time(problem_, sequence.order))
    sum += std::max<std::int64_t>(0, bytes - budget_);
  return sum;
}

const Sequence& ScheduleOptimizer::least_over() const {
  return *std::ranges::min_element(
      orders_, {}, [this](const Sequence& sequence) { return bytes_over_budget(sequence); });
}

IntervalSearchSettings ScheduleOptimizer::interval_settings(IntervalRound round, double from,
                                                            double to) {
  const IntervalSearchOptions& how = how_.intervals;
  IntervalSearchSettings settings;
  settings.budget = budget_;
  settings.priced = round.priced;
  settings.move_operators = options_.order == OrderChoice::kSearch && how_.on.operator_moves;
  if (round.priced) {
    const bool hot = round.afresh && problem_.tasks <= how_.small_graph_tasks;
    settings.heat = hot ? how.priced.small_graph_heat : how.priced.heat;
  } else {
    const bool first = from == 0;  // of a counted search: its rounds begin at 0
    settings.heat = first || round.afresh ? how.repaired.heat : how.repaired.later_heat;
  }
  settings.progress = progress_of(from, to, effort_.moves);
  return settings;
}

void ScheduleOptimizer::try_intervals(std::uint64_t seed, int number, IntervalRound round,
                                      double from, double to) {
  if (from_free_swaps(number)) return try_free_swaps(seed, round, from, to);
  const IntervalSearchOptions& how = how_.intervals;
  IntervalSearchSettings settings = interval_settings(round, from, to);
  bool nearest = false;
  {
    // Three of four attempts go on from what was nearest to the budget.
    const std::lock_guard lock(mutex_);
    nearest = !best_ && nearest_ && number % 4 != 3;
  }
  if (nearest) {
    settings.priced = true;
    settings.dear = true;
    settings.heat = how.priced.heat;
  }
  IntervalPlan found = schedule::search_intervals(
      starting_point(seed, number, round.afresh, nearest), no_swap_, seed, how, settings);
  if (found.list.actions.empty()) return;
  consider_intervals(no_swap_, found.list, found.order, seed);
  const std::lock_guard lock(mutex_);
  if (!found.found && (!nearest_ || found.excess < nearest_->excess)) nearest_ = std::move(found);
}

// Every other attempt, where there is anything to swap.
bool ScheduleOptimizer::from_free_swaps(int number) const {
  return options_.remedies.swap && how_.on.swap_intervals && how_.on.free_swaps &&
         number % 2 == 1 &&
         std::any_of(no_swap_.encoding.begin(), no_swap_.encoding.end(), is_swap);
}

// From the best plan without its swaps, or the no-recompute plan: first the copies that nothing
// waits for, then a search for what else has to go.
void ScheduleOptimizer::try_free_swaps(std::uint64_t seed, IntervalRound round, double from,
                                       double to) {
  Problem own = no_swap_;
  Random random(seed);
  const bool afresh =
      random.chance(how_.free_swaps.afresh_chance) && problem_.tasks <= how_.afresh_tasks;
  Retention start = [&] {
    const std::lock_guard lock(mutex_);
    if (!best_ || afresh) return Retention(own, orders_[seed % orders_.size()].order);
    return Retention::from_actions(own, Sequence(own, best_->order),
                                   without_copies(action_list_of(best_->schedule)));
  }();
  start.set_limit(budget_);
  settle(free_swaps(problem_, start, random, how_.free_swaps), own, start);
  const IntervalPlan found = schedule::search_intervals(std::move(start), own, seed, how_.intervals,
                                                        interval_settings(round, from, to));
  if (!found.list.actions.empty()) consider_intervals(own, found.list, found.order, seed);
}

void ScheduleOptimizer::try_gaps(std::uint64_t seed, bool from_best, double from, double to) {
  EvictorSettings start = good_;
  start.stop = [this] { return out_of_time(); };
  start.give_up_seconds = longest(how_.hopeless);
  Sequence sequence = orders_[favourite_];
  {
    const std::lock_guard lock(mutex_);
    if (best_) start.give_up_seconds = how_.gaps.give_up_times * best_->schedule.seconds;
    if (best_ && from_best) {
      sequence = Sequence(problem_, best_->order);
      start.gaps = choices_of(problem_, sequence, action_list_of(best_->schedule));
    }
  }
  GapSearchSettings settings;
  settings.progress = progress_of(from, to, effort_.restarts);
  settings.on_better = [&](const GreedyEvictor& walk) {
    consider(walk.action_list(), sequence.order);
  };
  schedule::search_gaps(problem_, sequence, std::move(start), seed, how_, settings);
}

}  // namespace plimsoll::schedule
