// Retention: a plan as "which values are held across which stages", and what that costs.
//
// Stage t is everything that runs to get task order[t] run for the first time. For every value and
// every boundary between stages the plan says: held as it is, held encoded, or not held. What runs
// in a stage follows: the closure of what is missing. So a plan is two bit matrices and an order, a
// change to one retention interval touches the two stages at its ends and the bytes between them
// (live_bytes.h).
//
//            stage 0   1   2   3         held[x] = boundaries 1, 2  (0-based start of stage)
//   x made here ┘  └held┘ gap └ rerun    stage 3 runs x's task again, then its own
//
// Rules of the model (the linked schedule can only be better):
//   - within a stage tasks run in order of their positions;
//   - a value held at the start of a stage occupies memory in that stage until its last use there,
//     or through it when it is held at the next boundary;
//   - scratch and all outputs of a running task are there during its run; in-place outputs take
//     over an input that ends there.
//
// Changes are logged and can be rolled back; that is what makes local search cheap. Not
// thread-safe; O(values · stages / 8) bytes, so only up to kRetentionLimit of them.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/bit_rows.h"
#include "plimsoll/schedule/search/live_bytes.h"
#include "plimsoll/schedule/search/problem.h"

namespace plimsoll::schedule {

constexpr std::int64_t kRetentionLimit = 600'000'000;  // values · stages: 75 MB a matrix

class Retention {
 public:
  static constexpr double kAnyPrice = std::numeric_limits<double>::infinity();
  struct Gap {
    Index begin = 0;  // boundaries [begin, end)
    Index end = 0;
  };

  // Everything held from its making to its last reader.
  Retention(const Problem& problem, std::vector<Index> order);
  // What a list held: a value is held between its making and the last read of that instance.
  static Retention from_actions(const Problem& problem, const Sequence& sequence,
                                const ActionList& list);

  double seconds() const { return total_; }
  bool possible() const { return broken_ == 0; }  // every read can be served
  std::int64_t peak() const { return live_bytes_.highest(); }
  // Byte · stages above the limit set last.
  std::int64_t excess() const { return live_bytes_.excess(); }
  // What they cost at a price of its own for every stage, in seconds.
  double toll() const { return live_bytes_.toll(); }
  void set_prices(double price) { live_bytes_.set_prices(price); }
  void scale_prices(double factor) { live_bytes_.scale_prices(factor); }
  void raise_prices(double factor, double common, double most) {
    live_bytes_.raise_prices(factor, common, most);
  }
  void set_limit(std::int64_t bytes) { live_bytes_.set_limit(bytes); }
  std::int64_t excess_at(Index stage) const { return live_bytes_.excess_at(at(stage)); }
  // By how much toll() falls, at most, when the value goes from a gap, and what holding it there
  // adds, at least.
  double relief(Gap gap, std::int64_t bytes) const {
    return live_bytes_.relief(at(gap.begin), at(gap.end), bytes);
  }
  double burden(Gap gap, std::int64_t bytes) const {
    return live_bytes_.burden(at(gap.begin), at(gap.end), bytes);
  }
  Index peak_stage() const { return static_cast<Index>(live_bytes_.where()); }
  // What a stage takes beyond its own task.
  double extra_seconds(Index stage) const {
    const auto t = at(stage);
    return stage_seconds_[t] - p_->seconds[static_cast<std::size_t>(order_[t])];
  }
  const std::vector<Index>& order() const { return order_; }
  Index stages() const { return p_->tasks; }
  // Runs, decodes and encodes, in order.
  const std::vector<ListedAction>& actions(Index stage) const { return actions_[at(stage)]; }
  bool held(Index value, Index boundary) const { return plain_.get(value, boundary); }
  bool held_encoded(Index value, Index boundary) const {
    return encodes_ && encoded_.get(value, boundary);
  }

  // The idle stretch of a held value around the start of a stage: [a, b) such that dropping it
  // changes only the stages a - 1 and b - 1. Where the stage reads the value it ends there: the
  // value is then recomputed in it, after what else has to be.
  Gap gap_at(Index value, Index stage) const;
  bool reads(Index stage, Index value) const { return used_.get(value, stage); }
  // False where the value has been written over by then: it is not there to be held.
  bool may_hold(Index value, Index boundary) const {
    const Index over = p_->overwriter[at(value)];
    return over == kNoIndex || boundary <= position_[at(over)];
  }
  // The next stage from `stage` on, or else the first, at whose start the value is held; kNoIndex
  // if it never is.
  Index some_held(Index value, Index stage) const;
  // The last stage before `stage` after which the value could be held on, or kNoIndex.
  Index last_available(Index value, Index stage) const;
  // Extra seconds when the gap is dropped; infinity when that is impossible or, so that long
  // closures cost no time, when it is more than `most`.
  double drop_price(Index value, Gap gap, double most = kAnyPrice);
  double encode_price(Index value) const;
  bool encodable(Index value) const { return p_->encoding[at(value)] != kNoIndex; }

  // Changes. The boundaries must all be in the opposite state before; the form is kDevice or
  // kEncoded.
  void hold(Index value, Gap gap, Form form, bool on);
  // Swaps the first runs at `stage` and `stage + 1`; false when data forbid it.
  bool transpose(Index stage);
  bool can_transpose(Index stage) const;

  std::size_t mark() const { return log_.size(); }
  void roll_back(std::size_t mark);
  void forget_log() { log_.clear(); }
  // Sums again what additions have blurred.
  void refresh_total();

  ActionList action_list() const;

 private:
  struct Change {
    enum class Kind : std::uint8_t { kHold, kTranspose } kind;
    Form form;
    bool on;
    Index value;
    Gap gap;
  };

  Retention(const Problem& problem, std::vector<Index> order, bool hold_all);
  void hold_raw(Index value, Gap gap, Form form, bool on);
  void transpose_raw(Index stage);
  void build();
  void redo(Index stage);
  void flush();
  void mark_dirty(Index stage);
  static void erase_one(std::vector<Index>& list, Index value);
  bool collect(Index stage, std::vector<ListedAction>& actions, double& seconds);
  double recompute_price(Index value, Index stage, double most);
  void sort_by_place(std::vector<ListedAction>& actions);
  Index place_of(ListedAction action) const;
  std::int64_t highest_bytes(Index stage, const std::vector<ListedAction>& actions);
  void note_uses(Index stage, bool on);
  template <typename Visit>
  void for_each_read(ListedAction action, Visit visit) const;

  const Problem* p_;
  std::vector<Index> order_, position_;
  bool encodes_ = false;
  BitRows plain_, encoded_;                 // per value: boundaries at which it is held
  BitRows used_;                            // per value: stages that read it
  BitRows ran_;                             // per task: stages that run it
  std::vector<std::vector<Index>> starts_;  // per stage: values held from its end on, not before
  std::vector<std::vector<Index>> encode_starts_;   // the same, encoded
  std::vector<std::vector<ListedAction>> actions_;  // per stage
  std::vector<double> stage_seconds_;
  std::vector<std::int64_t> stage_extra_;
  std::vector<char> stage_broken_;
  LiveBytes live_bytes_;
  double total_ = 0;
  int broken_ = 0;
  std::vector<Change> log_;
  std::vector<Index> dirty_;
  // scratch space of stage evaluation
  std::vector<std::int32_t> value_mark_, task_mark_;
  std::int32_t mark_now_ = 0;
  std::vector<Index> stack_;
  std::vector<ListedAction> collected_;
  std::vector<std::pair<std::uint64_t, ListedAction>> placed_;
  std::vector<std::int32_t> last_read_, last_mark_;
};

}  // namespace plimsoll::schedule
