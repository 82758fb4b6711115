// The bodies a skyline still has to place, indexed so that the best for a valley is found quickly.
//
// Items stand in the order of their first section, in blocks of 16, with a tree of (highest
// priority, least end, greatest end) above the blocks. Branch and bound over it answers "best of
// those with begin >= x, end <= y, covering s, no higher than h" in about log n; a query starts at
// the lowest node above its range.
//
// Snug fit. Asked for, an item is worth less by 5 octaves of area per octave of sections that it
// leaves free at either side of the valley (beyond two fifths of the mean span, which are easily
// filled).
//
// Everything a query reads lies in flat arrays per item: a look at the body itself would be a cache
// miss, and those were a quarter of a pass over a million bodies. One index belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

class ItemIndex {
 public:
  struct Want {
    Interval<std::int32_t> within;    // sections
    std::int32_t covering = -1;       // a section of `within`; -1: none in particular
    std::int64_t highest = kLargest;  // units
    bool snug = false;
  };

  // Takes the bodies, which must be sorted by first section; `priority` is per body of the model.
  void load(const BodyModel& model, std::span<const std::uint32_t> bodies,
            std::span<const float> priority);

  // The item of highest worth; -1 when none will do.
  std::int32_t best(const Want& want);

  std::size_t size() const { return body_.size(); }
  std::uint32_t body(std::int32_t item) const { return body_[static_cast<std::size_t>(item)]; }
  float priority(std::int32_t item) const { return priority_[static_cast<std::size_t>(item)]; }
  void remove(std::int32_t item);
  bool removed(std::int32_t item) const;
  void restore(std::int32_t item, float priority) { set_priority(item, priority); }

  // Elementary steps so far, for budgets.
  std::int64_t work() const { return work_; }

 private:
  struct Summary {
    float priority;
    std::int32_t least_end;
    std::int32_t greatest_end;
    bool operator==(const Summary&) const = default;
  };
  struct Query {
    Want want;
    std::uint32_t from, to;  // items
    float best;
    std::int32_t pick;
  };

  void set_priority(std::int32_t item, float priority);
  void summarize(std::size_t block);
  Summary joined(std::size_t node) const;
  void search(Query& query);
  void search(Query& query, std::size_t node, std::size_t low, std::size_t high);
  void search_block(Query& query, std::size_t block);
  float looseness(std::int32_t left, std::int32_t right) const;

  std::vector<std::uint32_t> body_;
  std::vector<std::uint32_t> first_item_;  // per section
  std::vector<float> priority_;            // lowest of all once removed
  std::vector<std::int32_t> begin_;
  std::vector<std::int32_t> end_;
  std::vector<std::int64_t> height_;
  std::vector<Summary> tree_;
  std::size_t leaves_ = 1;
  std::uint32_t loose_from_ = 1;
  std::int32_t loose_octaves_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace plimsoll::pack
