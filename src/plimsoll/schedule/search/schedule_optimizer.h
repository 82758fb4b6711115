// ScheduleOptimizer: the search for the fastest schedule of one workload within one budget after
// another.
//
// The steps of fit.h in order, each from the best that is known: a first plan, orders of first
// runs, plans by segments, restarts of the eviction with changed prices, local search over
// retention intervals on all threads, and, where values may be swapped, the search over one
// decision per gap (gap_search.h). Whatever one of them finds is linked into a schedule, measured,
// and kept if it is within the budget and faster than the best so far. docs/searching.md draws it.
//
// Cut by the clock, or by counts where an answer has to be repeatable; then one thread does
// everything. One search at a time; the options must outlive the object.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/schedule/fit_options.h"
#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/greedy_evictor.h"
#include "plimsoll/schedule/search/interval_search.h"
#include "plimsoll/schedule/search/problem.h"
#include "plimsoll/schedule/search/retention.h"

namespace plimsoll::schedule {

struct Candidate {
  Schedule schedule;
  std::vector<Index> order;
};

bool faster(const Schedule& a, const Schedule& b);

// How far a search may go: by the clock, or by counts when it has to be repeatable.
struct Effort {
  bool counted = false;
  double seconds = 0;         // of the whole, by the clock
  std::int64_t restarts = 0;  // counted
  std::int64_t moves = 0;
};

// What deterministic plans give to every rung of their ladder.
Effort counted_effort(const Problem& problem, const SearchOptions& options);

class ScheduleOptimizer {
 public:
  ScheduleOptimizer(const Workload& workload, const FitOptions& options);

  const Problem& problem() const { return problem_; }
  const Candidate& keep_all() const { return kept_; }

  // The best schedule found within `budget`, or none.
  std::optional<Candidate> search(Bytes budget, const Effort& effort, std::uint64_t seed);

  // Within `budget`, with nothing larger than `stays` in memory between two tasks; or none.
  std::optional<Candidate> task_by_task(Bytes budget, Bytes stays);

  // The best before that, fastest first.
  std::vector<Schedule> take_runners_up();

  // The smallest peak of all that was found, within a budget or not, and of walks at budgets
  // between one that failed and that.
  Bytes smallest_found(Bytes failed);

 private:
  bool optimal() const;
  bool intervals_searchable() const;
  bool out_of_time() const;
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }
  // A share of what is left of the deadline, as a time of watch_.
  double until(double share) const;
  // Seconds after which a walk is given up.
  double longest(double times) const;
  EvictorSettings first_prices(std::int64_t budget) const;
  // Keeps what is within the budget and the fastest so far; returns its peak.
  Bytes consider(const ActionList& list, const std::vector<Index>& order);
  // A plan of the interval search; its swaps are also played by a walk, which copies ahead.
  void consider_intervals(const Problem& forms, const ActionList& list,
                          const std::vector<Index>& order, std::uint64_t seed);
  // Swaps as the form of no bytes, for copies.
  std::optional<ActionList> with_forms(ActionList list) const;
  // That there is a plan of so many bytes.
  void note_peak(Bytes peak);

  void first_plan(std::uint64_t seed);
  void choose_orders(std::uint64_t seed);
  void find_lowest_order();
  double hurried() const;
  std::vector<Index> polished(std::vector<Index> order, double until_share, Random& random);
  void cut_segments();
  using OfferPlan = std::function<void(const ActionList&, const std::vector<Index>& order)>;
  void cut_segments(const Problem& problem, const std::vector<Index>& order, double end,
                    const OfferPlan& offer);
  void restart(std::uint64_t seed, double hopeless, double share);
  void search_intervals(std::uint64_t seed);
  void search_gaps(std::uint64_t seed);

  // One attempt of one thread, from one time of watch_ to another.
  using Attempt = std::function<void(std::uint64_t seed, int number, double from, double to)>;
  int workers() const;
  int rounds_until(double end) const;
  void in_rounds(std::uint64_t seed, int rounds, double end, const Attempt& attempt);
  std::function<double()> progress_of(double from, double to, std::int64_t counts) const;
  bool walks_thrashed() const;
  IntervalRound interval_round(int number) const;
  std::int64_t bytes_over_budget(const Sequence& sequence) const;
  const Sequence& least_over() const;  // of the orders, by that
  IntervalSearchSettings interval_settings(IntervalRound round, double from, double to);
  bool from_free_swaps(int number) const;
  void try_free_swaps(std::uint64_t seed, IntervalRound round, double from, double to);
  void try_intervals(std::uint64_t seed, int number, IntervalRound round, double from, double to);
  Retention starting_point(std::uint64_t seed, int number, bool afresh, bool nearest);
  void try_gaps(std::uint64_t seed, bool from_best, double from, double to);

  const FitOptions& options_;
  const SearchOptions& how_;
  Problem problem_;
  Problem no_swap_;  // the same with swap as a form of no bytes: what the interval search works on
  Sequence given_;
  Index first_backward_;
  std::optional<Sequence> mirrored_;  // mirror_order(), where the order is free and it is another
  Sequence lowest_;                   // beam_order(), where the order is free; empty: not found
  Bytes lowest_peak_;
  Index lowest_width_ = 0;  // of the beam that found it
  Candidate kept_;
  std::int64_t budget_ = 0;
  Effort effort_;
  Stopwatch watch_;
  std::mutex mutex_;
  std::optional<Candidate> best_;
  bool segments_fit_ = false;  // one of them, within the budget
  bool thrashed_ = false;      // walks_thrashed()
  Bytes smallest_;             // peak of everything that was linked
  // Without a plan within the budget: what an interval search ended with nearest to it.
  std::optional<IntervalPlan> nearest_;
  std::deque<Schedule> runners_up_;  // slowest first
  std::vector<Sequence> orders_;
  EvictorSettings good_;       // of the best restart
  std::size_t favourite_ = 0;  // its order
};

}  // namespace plimsoll::schedule
