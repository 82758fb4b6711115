// SearchOptions: every switch, probability, weight and limit of the searches, with what it is for.
//
// The defaults are what planning uses; nothing but benches and tests changes them.
// docs/searching.md says in which order the searches run and what each gains, measured with `on`
// below.
//
// Words of the fields:
//   ..._chance    probability of one choice
//   ..._up_to     upper end of a move's share when one number in [0, 1) picks among several: the
//                 fields of one group rise, and each takes what lies between it and the one before
//   ..._share     of what is left of the deadline
//   ..._tasks     size of a graph from which, or up to which, something is done
//   heat          starting temperature of simulated annealing; it falls to 0 as (1 - progress)²
#pragma once

#include <array>
#include <cstdint>

namespace plimsoll::schedule {

// Which searches run. Off means: skipped, and its time or count is not given to another.
struct SearchSwitches {
  bool orders = true;              // other orders of first runs than the given one (order.h)
  bool beam = true;                // the order with the lowest peak (beam_order.h)
  bool segments = true;            // plans by cutting the forward half (segments.h)
  bool restarts = true;            // eviction again and again with changed prices (restarts.h)
  bool priced_intervals = true;    // interval search with a price on bytes over the budget
  bool repaired_intervals = true;  // interval search with repair after every move
  bool swap_intervals = true;      // swap as a move of the interval search
  bool free_swaps = true;          // interval search from copies that nothing waits for
  bool operator_moves = true;      // moves of operators within the interval search
  bool gaps = true;                // one decision per gap, where values may be swapped
};

// What is added to or multiplied with the caller's seed, so that no two searches draw the same
// numbers.
struct SearchSeeds {
  std::uint64_t long_restarts = 1;
  std::uint64_t first_intervals = 7;
  std::uint64_t gaps = 1;
  std::uint64_t round_stride = 101;  // between the rounds of one search
  std::uint64_t restart_factor = 7919, restart_offset = 1;
  std::uint64_t gap_factor = 31, gap_offset = 7;
};

// order.h
struct OrderSearchOptions {
  std::size_t list_candidates = 64;     // ready tasks looked at for each place of a list schedule
  std::int64_t join_limit = 1'000'000;  // sinks · tasks up to which joining sinks is tried
  double over_budget_weight = 100;      // of bytes over the budget, against the sum of squares
  std::int64_t longest_move = 256;      // places
  double later_chance = 0.5;            // that a task moves to a later place, not an earlier one
  // Polishing by neighbour swaps, in portions so that it can be cut by the clock.
  std::int64_t counted_swaps_per_task = 400, most_counted_swaps = 4'000'000;
  std::int64_t timed_swaps_per_task = 20'000;
  std::int64_t portion = 100'000;
  // beam_order.h: so wide as a share of the deadline allows, at so many bytes a second.
  double beam_share = 0.05, beam_bytes_per_second = 3e9, counted_beam_bytes = 3e8;
  std::int32_t narrowest_beam = 2, widest_beam = 300, counted_beam = 64;
  // Of the whole deadline: when each has to be done; the lowest order only where no plan is known.
  double given_until = 0.1, list_until = 0.2, lowest_until = 0.3;
};

// reorder.h
struct ReorderOptions {
  int rounds = 8;
  std::int64_t swaps_per_task = 256, most_swaps = 4'000'000;
  std::int64_t aim_percent = 97;  // of the peak reached so far: the budget of the next round
};

// greedy_evictor.h
struct EvictorOptions {
  std::size_t sample = 64;       // resident values priced for one eviction
  int deepest = 32;              // recomputations inside one another
  int closure_cap = 256;         // tasks of one recomputation that are followed ...
  double closure_penalty = 4;    // ... and by how much dearer it counts beyond
  std::size_t look_ahead = 256;  // evicted successors followed for a next use
  int last_use_cap = 4096;
  double decided_factor = 1e-3;  // times the price of a remedy decided on; its inverse for keeping
  std::size_t actions_between_stops = 32;  // how often a walk asks whether to end
  // What was swapped comes back this many copy times before its use.
  static constexpr float kLead = 1.25;
  double alpha = 1;          // of the first walk: the weight of distance to the next use
  double copy_weight = 0.1;  // what a second of hidden copying counts as
  // Changed prices: alpha is drawn from [least, least + range).
  double alpha_least = 0.3, alpha_range = 1.5;
  double free_copies_chance = 0.3;  // that hidden copies cost nothing; else uniform in [0, 1)
};

// segments.h
struct SegmentOptions {
  std::int32_t fewest_tasks = 4;  // of the forward half
  double step = 1.35;             // between two numbers of segments on the ladder
  double fewest_segments = 2;
  double tasks_per_segment = 3;  // at least
  double cut_tolerance = 0.25;   // of a segment: how far a cut moves to where less crosses it
  std::size_t resolution = 200;  // the number of kept tasks is found to this part of all of them
};

// restarts.h
struct RestartOptions {
  std::int64_t least_runs = 40;                          // before giving up ...
  std::int64_t fruitless = 4000;                         // ... after so many runs without a gain
  std::int64_t timed_runs = 1, timed_runs_at_first = 3;  // at least, the second without a plan
  double other_order_chance = 0.2;
  double give_up_times = 1.2;  // times the best run
  // How the next run differs from the best: a few values that had to leave, else all of them.
  double some_chance = 0.3, some_chance_with_swap = 0.7;
  std::int64_t most_values = 6;
  double swap_weight_chance = 0.5;
  double log_weight_least = -2, log_weight_range = 4;
  double alpha_chance = 0.5;
  double least_spread = 0.05, spread_range = 0.8;  // of all weights, as logarithms
};

// interval_search.h
struct IntervalSearchOptions {
  // Both ways.
  double encode_chance = 0.5;       // where a value may be recomputed or encoded
  int recomputed_tries = 60;        // stages looked at for something recomputed
  int drop_tries = 20;              // values looked at for a stretch to drop
  std::size_t earliest = 24;        // stages by which a recomputation moves forward, at most
  double later_chance = 0.5;        // of a move of an operator, else earlier
  double single_step_chance = 0.5;  // by one place only
  double long_move_chance = 0.3;    // of the others
  std::int64_t long_move = 24, short_move = 6;

  // repaired
  struct Repaired {
    double heat = 0.006, later_heat = 0.003;  // of the step's time; in the first round and later
    double heat_tasks = 60;                   // larger graphs are colder, by their size
    double move_operator_up_to = 0.12;
    double recompute_earlier_up_to = 0.22;
    double rerun_up_to = 0.34;
    double keep_up_to = 0.62;
    double drop_and_keep_up_to = 0.8;  // the rest: drop only
    double second_drop_chance = 0.4, third_drop_chance = 0.15;
    double noise = 0.7;  // on the score of what a repair lets go
    std::int32_t move_repairs = 12, recompute_repairs = 14, keep_repairs = 14, drop_repairs = 10;
    std::int32_t first_repairs_per_task = 100;
    std::int64_t least_fills = 4, fills_range = 12;  // stretches kept again after a repair
    std::size_t candidates = 48;                     // values priced for one repair
    double epsilon = 1e-4;  // of a mean task: what a drop that costs nothing counts as
    int moves_per_check = 8;
    std::int32_t repairs_per_check = 64;
    std::int64_t checks_per_sum = 128;  // sums anew what additions have blurred
  } repaired;

  // priced
  struct Priced {
    double heat = 0.3;  // in times of a mean task
    // What settles most graphs is too cold to leave plans of small ones that recompute nearly
    // everything.
    double small_graph_heat = 4;
    double move_operator_up_to = 0.1;
    double drop_up_to = 0.4;
    double keep_up_to = 0.7;
    double keep_and_drop_up_to = 0.8;
    double rerun_up_to = 0.9;     // the rest: recompute earlier
    double crowded_chance = 0.5;  // that a drop is at a stage over the budget
    int crowded_tries = 8;        // stages looked at for one over the budget
    int drop_tries = 8;           // values held there that are looked at
    int moves_per_check = 64;
    // Prices of a byte over the budget, as the time of the whole step for each byte of all values:
    // the first; the one up to which all stages rise together; the highest for stages that stay
    // over. The last two are times the number of values.
    double first_price = 0.1, common_price = 0.003, top_price = 0.1;
    // How much of the search goes into prices twice as high; once a plan fits, so many moves a
    // value, if that is less.
    double doubling = 0.07, moves_per_doubling = 20;
    int falls_above = 2,
        rises_below = 3;  // within the budget more than 1/2, less than 1/3 of moves
  } priced;
};

// free_swaps.h
struct FreeSwapOptions {
  double afresh_chance = 0.6;  // that it starts from the no-recompute plan, not from the best
  int tries = 8;               // of filling the idle time; the one that leaves the least is taken
  double blind_chance = 0.5;   // that what recomputing would cost is not looked at
  double most_noise = 1;       // on the logarithm of a score
};

// gap_search.h
struct GapSearchOptions {
  double heat = 0.01;  // of the step's time
  double heat_tasks = 60;
  int legs = 8;                // each leg of the way starts from the best so far
  double price_chance = 0.05;  // that alpha and the price of copies change too
  int most_changes = 4;        // gaps changed by one move
  double next_change_chance = 0.4;
  double emptied_chance = 0.6;  // that a gap is one that was left empty, else any
  double lead_chance = 0.15;    // that the lead of a copy changes, not the remedy
  double lead_least = 0.5, log_lead_range = 2.5;
  double give_up_times = 2;  // times the best plan
};

// One round of interval search: which way, and from where.
struct IntervalRound {
  bool priced = false;
  bool afresh = false;  // from the no-recompute plan, not from the best so far
};

// schedule_optimizer.h
struct SearchOptions {
  SearchSwitches on;
  SearchSeeds seeds;
  OrderSearchOptions order;
  EvictorOptions evictor;
  SegmentOptions segments;
  RestartOptions restarts;
  IntervalSearchOptions intervals;
  FreeSwapOptions free_swaps;
  GapSearchOptions gaps;

  // A walk is given up at so many times the no-recompute plan with every copy there is to make:
  double thrashing = 3;  // it evicts what it needs next
  double hopeless = 20;  // not worth building even if nothing else is found
  // Over the no-recompute plan: where the best of walks is slower, intervals start without it.
  double poor_walk = 0.12;

  // Shares of what is left of the deadline, where the searches after it can run too.
  double segment_share = 0.15;       // of either order
  std::int64_t least_segments = 48;  // plans tried within the deadline, while none fits
  double hurry = 0.3;  // times the shares of orders and segments, where walks only thrash
  double restart_share = 0.12;
  double long_restart_share = 0.05;         // walks of any length, as long as there is no plan
  double first_interval_share = 0.6;        // intervals alone, where walks only thrash
  double first_interval_share_swap = 0.15;  // the same where values may be swapped
  double interval_share_swap = 0.6;         // intervals, where values may be swapped
  double swap_form_weight = 0.3;            // of the time of copies, to the interval search
  double grace_seconds = 0.1;  // on top, so that even a deadline of nothing gives a plan

  // Rounds, after each of which the best of all threads is shared.
  double round_seconds = 3;
  double long_round_tasks = 400;  // from so many on; fewer take less
  double shortest_round = 0.08;
  int fewest_rounds = 4;  // and as many where work is counted
  std::array<IntervalRound, 4> first_rounds{
      {{.priced = true}, {.afresh = true}, {.priced = true, .afresh = true}, {}}};
  // Then these again and again; afresh only on small graphs.
  std::array<IntervalRound, 4> later_rounds{
      {{.priced = true}, {}, {.priced = true, .afresh = true}, {}}};
  // Where walks only thrash: prices that fall and rise again find more than repairs.
  std::array<IntervalRound, 4> thrashed_rounds{
      {{.priced = true}, {.priced = true}, {.priced = true}, {}}};
  std::int32_t small_graph_tasks = 200;
  std::int32_t afresh_tasks = 5000;  // dropping all that is over the budget takes too long beyond

  // Counted work of one search, for repeatable plans: so much divided by the tasks, within limits.
  std::int64_t counted_restarts = 60'000, least_restarts = 4, most_restarts = 400;
  std::int64_t counted_moves = 30'000, least_moves = 8, most_moves = 100;

  // The ladder of budgets between the proven lower bound and the no-recompute plan.
  int counted_rungs = 40, timed_rungs = 16;
  std::size_t runners_up = 8;  // plans kept behind the best

  // The smallest budget that works, by halving.
  int halvings = 24;
  std::int64_t halving_resolution = 200;  // part of the budget
  double smallest_seconds = 0.3;
  double smallest_share = 3;        // times the deadline, where that is less
  double smallest_at_least = 0.03;  // however short it is
  // Task by task: the largest value that stays in memory, as shares of the budget.
  std::array<double, 6> stay_shares{0.25, 0.06, 0.015, 0.004, 0.001, 0};
};

}  // namespace plimsoll::schedule
