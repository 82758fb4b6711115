// Retention: a plan as "which values are held across which stages", and what that costs.
//
// Stage t is everything that runs to get task order[t] run for the first time. For every value and
// every boundary between stages the plan says: held as it is, held encoded, or not held. What runs
// in a stage follows: the closure of what is missing. So a plan is two bit matrices and an order, a
// change to one retention interval touches the two stages at its ends and the bytes between them
// (load_line.h).
//
//            stage 0   1   2   3         held[x] = boundaries 1, 2  (0-based start of stage)
//   x made here ┘  └held┘ gap └ remade   stage 3 runs x's task again, then its own
//
// Rules of the model (the linked schedule can only be better):
//   - within a stage tasks run in order of their positions;
//   - a value held at the start of a stage occupies memory in that stage until its last use there,
//     or through it when it is held at the next boundary;
//   - scratch and all outputs of a running task are there during its run; in-place outputs take
//   over
//     an input that ends there.
//
// Changes are logged and can be rolled back; that is what makes local search cheap. Not
// thread-safe; O(values · stages / 8) bytes, so only up to kRetentionLimit of them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "plimsoll/schedule/search/bit_rows.h"
#include "plimsoll/schedule/search/load_line.h"
#include "plimsoll/schedule/search/problem.h"
#include "plimsoll/schedule/search/script.h"

namespace plimsoll::schedule {

constexpr std::int64_t kRetentionLimit = 600'000'000;  // values · stages: 75 MB a matrix

class Retention {
 public:
  static constexpr double kAnyPrice = std::numeric_limits<double>::infinity();
  enum class Hold : std::uint8_t { kPlain, kEncoded };
  struct Gap {
    Index begin = 0;  // boundaries [begin, end)
    Index end = 0;
  };

  // Everything held from its making to its last reader.
  Retention(const Problem& problem, std::vector<Index> order);
  // What a script held: a value is held between its making and the last read of that instance.
  static Retention from_script(const Problem& problem, const Sequence& sequence,
                               const Script& script);

  double seconds() const { return total_; }
  bool possible() const { return broken_ == 0; }  // every read can be served
  std::int64_t peak() const { return loads_.highest(); }
  // Byte · stages above the limit set last.
  std::int64_t excess() const { return loads_.excess(); }
  // What they cost at a price of its own for every stage, in seconds.
  double toll() const { return loads_.toll(); }
  void set_prices(double price) { loads_.set_prices(price); }
  void scale_prices(double factor) { loads_.scale_prices(factor); }
  void raise_prices(double factor, double common, double most) {
    loads_.raise_prices(factor, common, most);
  }
  void set_limit(std::int64_t bytes) { loads_.set_limit(bytes); }
  std::int64_t excess_at(Index stage) const {
    return loads_.excess_at(static_cast<std::size_t>(stage));
  }
  // By how much toll() falls, at most, when the value goes from a gap, and what holding it there
  // adds, at least.
  double relief(Gap gap, std::int64_t bytes) const {
    return loads_.relief(static_cast<std::size_t>(gap.begin), static_cast<std::size_t>(gap.end),
                         bytes);
  }
  double burden(Gap gap, std::int64_t bytes) const {
    return loads_.burden(static_cast<std::size_t>(gap.begin), static_cast<std::size_t>(gap.end),
                         bytes);
  }
  Index peak_stage() const { return static_cast<Index>(loads_.where()); }
  // What a stage takes beyond its own task.
  double extra_seconds(Index stage) const {
    const auto t = static_cast<std::size_t>(stage);
    return stage_seconds_[t] - p_->seconds[static_cast<std::size_t>(order_[t])];
  }
  const std::vector<Index>& order() const { return order_; }
  Index stages() const { return p_->tasks; }
  const std::vector<Index>& runs(Index stage) const {
    return runs_[static_cast<std::size_t>(stage)];
  }
  bool held(Index value, Index boundary) const { return plain_.get(value, boundary); }
  bool held_encoded(Index value, Index boundary) const {
    return encodes_ && encoded_.get(value, boundary);
  }
  bool is_decode(Index item) const { return item >= p_->tasks; }
  Index decoded_value(Index item) const { return item - p_->tasks; }

  // The idle stretch of a held value around the start of a stage: [a, b) such that dropping it
  // changes only the stages a - 1 and b - 1. Where the stage reads the value it ends there: the
  // value is then made again in it, after what else has to be.
  Gap gap_at(Index value, Index stage) const;
  bool reads(Index stage, Index value) const { return used_.get(value, stage); }
  // False where the value has been written over by then: it is not there to be held.
  bool may_hold(Index value, Index boundary) const {
    const Index over = p_->overwriter[static_cast<std::size_t>(value)];
    return over == kNoIndex || boundary <= position_[static_cast<std::size_t>(over)];
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
  bool encodable(Index value) const {
    return p_->encoding[static_cast<std::size_t>(value)] != kNoIndex;
  }

  // Changes. The boundaries must all be in the opposite state before.
  void hold(Index value, Gap gap, Hold how, bool on);
  // Swaps the first runs at `stage` and `stage + 1`; false when data forbid it.
  bool transpose(Index stage);
  bool can_transpose(Index stage) const;

  std::size_t mark() const { return log_.size(); }
  void roll_back(std::size_t mark);
  void forget_log() { log_.clear(); }
  // Sums again what additions have blurred.
  void refresh_total();

  Script script() const;

 private:
  struct Change {
    enum class Kind : std::uint8_t { kHold, kTranspose } kind;
    Hold how;
    bool on;
    Index value;
    Gap gap;
  };
  struct StageResult {
    double seconds = 0;
    std::int64_t extra = 0;  // highest bytes over what is held at the start
    bool possible = true;
  };

  Retention(const Problem& problem, std::vector<Index> order, bool hold_all);
  void hold_raw(Index value, Gap gap, Hold how, bool on);
  void transpose_raw(Index stage);
  void build();
  void redo(Index stage);
  void settle();
  void soil(Index stage);
  bool collect(Index stage, std::vector<Index>& items, double& seconds);
  double remake_price(Index value, Index stage, double most);
  void sort_by_key(std::vector<Index>& items);
  std::int64_t walk(Index stage, const std::vector<Index>& items);
  void touches(Index stage, bool on);
  Index key_of(Index item) const;
  template <typename Visit>
  void for_each_read(Index stage, Index item, Visit visit) const;

  const Problem* p_;
  std::vector<Index> order_, position_;
  bool encodes_ = false;
  BitRows plain_, encoded_;                 // per value: boundaries at which it is held
  BitRows used_;                            // per value: stages that read it
  BitRows ran_;                             // per task: stages that run it
  std::vector<std::vector<Index>> starts_;  // per stage: values held from its end on, not before
  std::vector<std::vector<Index>> encode_starts_;  // the same, encoded
  std::vector<std::vector<Index>> runs_;  // per stage: tasks, and tasks + value for decodes
  std::vector<double> stage_seconds_;
  std::vector<std::int64_t> stage_extra_;
  std::vector<char> stage_broken_;
  LoadLine loads_;
  double total_ = 0;
  int broken_ = 0;
  std::vector<Change> log_;
  std::vector<Index> soiled_;
  // scratch space of stage evaluation
  std::vector<std::int32_t> value_mark_, task_mark_;
  std::int32_t mark_now_ = 0;
  std::vector<Index> stack_, items_;
  std::vector<std::uint64_t> keyed_;
  std::vector<std::int32_t> last_item_, last_mark_;
};

}  // namespace plimsoll::schedule
