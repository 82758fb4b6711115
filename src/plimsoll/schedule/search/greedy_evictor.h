// GreedyEvictor: one walk along an order under a hard budget, evicting by look-ahead.
//
// Where bytes are short, every resident value that is not in use has a price per byte and distance:
//
//     price = weight · Δtime(remedy) / (bytes freed · distance to next use ^ alpha)
//
// and the cheapest goes. The remedy is the cheapest of: recompute (the time of every missing task
// it would take now), swap (the stall, if the copy engines have no open window), encode (there and
// back). The next use counts evicted successors too: x is needed when y is recomputed from x.
// Needed but missing values are copied in, decoded or recomputed, deepest first; what was
// recomputed stays until squeezed out. Only where more than EvictorOptions::sample candidates are
// resident is the choice among a random sample.
//
// A decision for single gaps (the stretch before one reader of one value) goes before prices: the
// value is kept, or is the first to be dropped, swapped or encoded when bytes are short. That is
// what gap_search.h changes, one gap at a time.
//
// With `stays` a walk goes task by task: whatever is larger and can be swapped is offloaded after
// every task and comes back when asked for, so that lifetimes of different tasks hardly overlap and
// packing needs little more than the largest task. Slow, and the surest way into a small budget.
//
// Every run is feasible by construction or fails; it never exceeds the budget. Different weights
// and alpha give different plans; the caller restarts with perturbed ones and keeps the best. Alpha
// between 0.4 and 1 wins on transformers, higher on chains.
//
// Cost: O(evictions · sample · closure) — 10 µs for 50 tasks, 0.2 s for 50,000. One object per
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/problem.h"
#include "plimsoll/schedule/search/search_options.h"

namespace plimsoll::schedule {

// What becomes of one gap, where it was decided before the walk.
struct GapChoice {
  Remedy remedy = Remedy::kUndecided;
  // What was swapped comes back this many copy times before its use.
  float lead = EvictorOptions::kLead;
};

struct EvictorSettings {
  std::int64_t budget = 0;
  double alpha = 0;                   // EvictorOptions::alpha at first
  double copy_weight = 0;             // EvictorOptions::copy_weight at first
  std::vector<double> weights;        // per value; empty: all 1
  std::vector<double> swap_weights;   // the same for swapping alone, on top
  std::vector<GapChoice> gaps;        // by GreedyEvictor::gap_of; empty: all undecided
  std::optional<std::int64_t> stays;  // task by task: what has more bytes leaves after every one
  double give_up_seconds = 0;         // the run is hopeless beyond this
  std::function<bool()> stop;         // asked now and then: true ends the run without a plan
};

class GreedyEvictor {
 public:
  // All of them must outlive the runs.
  GreedyEvictor(const Problem& problem, const Sequence& sequence, std::uint64_t seed,
                const EvictorOptions& options);
  // Continues with another order; it must outlive the runs.
  void set_sequence(const Sequence& sequence);

  bool run(const EvictorSettings& settings);  // false: no plan this way
  double seconds() const;                     // estimate of the makespan
  // What left memory before its last use in the last run, every time it did.
  const std::vector<Index>& left() const { return left_; }
  // The gaps of the same, in the order's numbering of them.
  const std::vector<std::size_t>& left_gaps() const { return left_gaps_; }
  std::size_t gaps() const { return q_->readers.items.size() + at(p_.values); }
  ActionList action_list() const;

 private:
  static constexpr Index kNever = std::numeric_limits<Index>::max();
  struct Victim {
    Index value = kNoIndex;
    Remedy remedy = Remedy::kDrop;  // kDrop, kSwap or kEncode
    double price = 0;
  };
  struct Closure {
    double seconds = 0;
    Index expires = kNever;
    bool possible = true;
  };

  void reset(const EvictorSettings& settings);
  bool absent(Index value) const {
    return !resident_[at(value)] && !encoded_[at(value)] && !hosted_[at(value)];
  }
  // One gap before every reader of a value, and one after the last. Call next_static() first.
  std::size_t gap_of(Index value) const {
    return at(q_->readers.starts[at(value)]) + at(value) + at(cursor_[at(value)]);
  }
  GapChoice choice_of(Index value) const {
    return settings_.gaps.empty() ? GapChoice{} : settings_.gaps[gap_of(value)];
  }
  // A moment of the walk: what is read from a position on, and a task that has just run.
  struct Moment {
    Index position = 0;
    Index finished = kNoIndex;
  };
  Index next_static(Index value, Index position);
  Index next_use(Index value, Moment when);
  Index next_use(Index value) { return next_use(value, {now_at_, kNoIndex}); }
  Index last_use(Index value);
  Closure closure_of(Index value);
  bool may_recompute(Index value, const Closure& closure);
  Victim price(Index value);
  bool evict(std::int64_t need, Index nearest_allowed = 0);
  void leave(const Victim& victim);
  void offload_large();
  void add(Index value);
  void remove(Index value);
  void touch(Index value);
  bool make_present(Index value, int depth);
  bool copy_in(Index value);
  bool decode(Index value);
  std::vector<Index> missing_tasks(Index task);
  bool run_task(Index task, int depth);
  std::vector<Index> taken_by(Index task);
  bool execute(Index task);
  bool finish_step();
  void free_dead(Index task);
  void prefetch();
  bool home_is_host(Index value) const;
  void note(ActionKind kind, Index id) { actions_.push_back({kind, id}); }

  const Problem& p_;
  const Sequence* q_;
  Random random_;
  const EvictorOptions& how_;
  EvictorSettings settings_;
  std::vector<Index> expires_;  // per task: first position at which an input of it is overwritten
  std::vector<Index> chain_expires_;  // ... or of any task that it may have to be recomputed from
  std::vector<double> start_of_;      // per position: clock of the no-recompute plan
  std::vector<double> distance_power_;
  double power_alpha_ = -1;
  std::vector<char> may_leave_;

  // state of one run
  Index now_at_ = 0;  // position being worked on
  double clock_ = 0, out_free_ = 0, in_free_ = 0;
  std::int64_t used_ = 0;
  std::vector<Index> evictable_;  // resident values that may leave
  std::vector<Index> place_;      // value -> index in evictable_, or kNoIndex
  std::vector<char> resident_, encoded_, hosted_, touched_, starts_on_host_;
  std::vector<std::int32_t> pins_;     // in use now
  std::vector<std::int32_t> pending_;  // reads by tasks that are about to be run again
  std::vector<std::int32_t> cursor_;   // per value: into its sorted readers
  std::vector<double> ready_at_, out_done_, touch_clock_;
  std::vector<std::int32_t> touch_place_;
  std::vector<std::int32_t> mark_;
  std::int32_t mark_now_ = 0;
  std::vector<Index> stack_, ahead_;
  std::vector<std::pair<Index, Index>> away_;  // heap: (next use, value on host)
  std::vector<ListedAction> actions_;
  std::vector<Index> left_;
  std::vector<std::size_t> left_gaps_;
  std::vector<std::pair<std::int32_t, Index>> copies_out_;  // (place in actions_, value)
  std::int32_t last_copy_out_ = 0;
};

}  // namespace plimsoll::schedule
