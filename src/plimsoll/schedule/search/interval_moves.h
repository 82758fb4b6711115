// IntervalMoves: a plan as retention intervals with the moves that both ways of interval search
// make.
//
// A move changes the plan or says that it found nothing to change; what becomes of it (kept, rolled
// back) is for the search that made it. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/search/retention.h"
#include "plimsoll/schedule/search/search_options.h"

namespace plimsoll::schedule {

class IntervalMoves {
 protected:
  IntervalMoves(Retention retention, const Problem& problem, std::uint64_t seed,
                const IntervalSearchOptions& options);

  struct Keepable {
    Index value = kNoIndex;
    Retention::Gap gap;
    double gain = 0;  // at most
  };
  // Something that is recomputed, and from where on it could have been held.
  Keepable keepable();
  // Holds a value across a gap, in place of its encoded form where that was held.
  void hold_plain(Index value, Retention::Gap gap);

  // Recomputes a value some stages before it is needed, where its inputs may still be at hand.
  bool recompute_earlier();
  // Drops the first part of an idle stretch and recomputes the value inside it, holding its inputs
  // on until then. One drop alone would pay for recomputing the inputs too and never look worth it.
  // With `slack`, not where it is known to cost more than that beyond what it gains.
  bool rerun_from_held_inputs(std::optional<double> slack);
  bool move_operator();

  // Whether an idle stretch would be encoded, or dropped and recomputed; none: neither can be.
  std::optional<bool> encode_or_drop(Index value, Retention::Gap gap);
  void let_go(Index value, Retention::Gap gap, bool encode);
  bool can_encode(Index value, Retention::Gap gap) const;

  Index random_index(std::size_t size) {
    return static_cast<Index>(random_.below(static_cast<std::int64_t>(size)));
  }
  Index random_movable() { return movable_[at(random_index(movable_.size()))]; }

  Retention retention_;
  const Problem& p_;
  Random random_;
  const IntervalSearchOptions& how_;
  std::vector<Index> movable_;  // values that may be dropped or encoded

 private:
  std::pair<Index, Index> recomputed();
  Retention::Gap wait_of(Index input, Index stage) const;
  double rerun_costs(Index value, Index stage) const;
};

}  // namespace plimsoll::schedule
