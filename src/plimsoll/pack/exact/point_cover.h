// The exact engine: point-cover search on plain bodies.
//
// Question: is there a packing of these items below these ceilings? The search builds it from the
// bottom. Per section it knows the floor (everything below is decided), `rem` (bytes not yet
// placed) and so the slack, ceiling - floor - rem. Slack only shrinks when space is wasted.
//
// Branching. Take a section s inside a valley of floors whose neighbours are higher. The point just
// above floor(s) is covered by an item that lies exactly there, or it is waste. So the branches
// are: each item of s whose lowest place is floor(s), and, if the slack allows, one branch that
// raises floor(s) to the next height any item of s could have. They exclude each other, so no
// arrangement is visited twice and no canonical order is needed. (In a valley nothing can slip
// under the item: that is why only valleys may be branched on.)
//
// Fail first. Among all valleys, the section with the fewest branches, then that where steps have
// failed most often so far (of 20 runs on hard tilings it solves 9 within 800,000 nodes, 2
// without), then the least slack. Propagation to the fixpoint, undone by a trail: cover_state.h.
// Decomposition. After every move the rest is split where no unplaced item crosses; parts are
// solved one by one, smallest first, so that a hopeless part fails early.
// Memo. A part is its unplaced items and its floors; the 128-bit hash of a part that failed is
// kept, across restarts, for as long as ceilings do not rise.
// Backjumping. A failure follows from the state of some sections: the one that has no choice left,
// and for each of its items the section whose floor keeps the item up (held_by_). A step that
// changed none of them is not to blame, so its other branches fail alike and are skipped. Sets of
// sections (SectionSet) carry the blame upwards; if propagation changed one of them, what it
// concluded from is blamed too. Example: an item is placed at noon, then the evening fails for
// reasons of the evening alone: the search does not try the other items of noon but goes back to
// its last step in the evening. Values. Candidates that close with what stands beside them (level
// tops, no step left) come first; the first three dives break ties by length, area and contention,
// all others mostly by chance: run times have a heavy tail, and many different short dives beat few
// long ones. Most follow one of the dives that got furthest (best_dives.h). A tenth of the nodes
// goes to ever longer dives, for proofs.
//
// Rejected: branching on the lowest valley (MiniMalloc's order) undoes decisions at one end of time
// because of a failure at the other, and misses two of its eleven hard problems in 8 s.
//
// Invariants: 1. kImpossible is a proof (up to 128-bit hash collisions in the memo). 2. places
// found respect ceilings, alignment and fixed items. Cost: a node costs the sections and items it
// touches; memory is the items x sections incidence plus 16 bytes per memo entry (at most 2^22 of
// them). One search belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/exact/cover_task.h"

namespace plimsoll::pack {

enum class CoverResult : std::uint8_t { kFound, kImpossible, kLimit };

struct CoverOptions {
  bool memo = true;
  bool fail_first = true;
  bool decompose = true;
  bool backjump = true;
  bool snug_cover = true;
  bool guided_dives = true;
  std::uint64_t seed = 1;
};

class PointCover {
 public:
  PointCover(CoverTask task, const CoverOptions& options);
  ~PointCover();
  PointCover(PointCover&&) noexcept;

  // Searches until an answer, `node_limit` nodes in all, or the end of the budget.
  CoverResult run(Budget& budget, std::int64_t node_limit);

  // Lowers (or raises) ceilings and highest places for the next run; the memo survives lowering.
  void set_limits(std::span<const std::int64_t> ceilings, std::span<const std::int64_t> highest);

  std::span<const std::int64_t> places() const;  // one per item, after kFound
  std::int64_t nodes() const;

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

}  // namespace plimsoll::pack
