// The state of the exact search: what is decided below the floors, and what follows from it.
//
// Per section the floor (everything below is decided), what is not yet placed, and how many items
// could lie right on the floor; per item its lowest place and the section whose floor holds it up
// there.
//
// Propagation, to the fixpoint: the lowest place of an item is the highest floor in its span,
// lifted to its alignment and over fixed items; the floor of a section is the lowest place among
// its items; what does not fit below the ceiling fails. Only what changes is touched, and a trail
// takes it back.
//
// Every step leaves a Trace: which sections it changed, and which made propagation change others.
// The search blames failures on sections with it (point_cover.h).
//
//   sections   0 1 2      items a = [0,2) of 4, b = [1,3) of 2, ceiling 6. place(a): floors 4 4 0;
//   floor      4 4 4      b then lies at 4 at least, and as nothing else is left of section 2, its
//                         floor is 4, too.
//
// Invariants: 1. undo_to(mark()) restores every value. 2. After a step that returned true, no
// unplaced item of a section lies below its floor, and floor + what is left of the section is
// within its ceiling. Cost: a step pays for the sections of the item and the items of the sections
// it touches. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plimsoll/pack/exact/cover_task.h"
#include "plimsoll/pack/exact/failed_states.h"

namespace plimsoll::pack {

class CoverState {
 public:
  using Range = Interval<std::int32_t>;

  // What a step changed, and what its consequences follow from.
  struct Trace {
    SectionSet direct;   // sections it set itself
    SectionSet derived;  // sections that propagation raised or found too full
    SectionSet because;  // sections whose state made it do so
  };

  explicit CoverState(CoverTask task);

  // For the next start(); true when something may lie higher than before.
  bool set_limits(std::span<const std::int64_t> ceilings, std::span<const std::int64_t> highest);

  // Nothing placed. False, here and below: it cannot be.
  bool start();
  bool place(std::uint32_t i, std::int64_t x);
  bool raise_floor(std::int32_t s, std::int64_t height);

  std::size_t mark() const { return trail_.size(); }
  void undo_to(std::size_t mark) {
    while (trail_.size() > mark) {
      *trail_.back().where = trail_.back().old;
      trail_.pop_back();
    }
  }

  const CoverTask& task() const { return task_; }
  const Trace& trace() const { return trace_; }  // of the last step
  // where the last failing step failed
  std::int32_t failed_section() const { return failed_section_; }
  std::int64_t take_work() { return std::exchange(work_, 0); }

  std::int64_t floor(std::int32_t s) const { return floor_[static_cast<std::size_t>(s)]; }
  std::int64_t slack(std::int32_t s) const {
    const auto at = static_cast<std::size_t>(s);
    return task_.ceilings[at] - floor_[at] - rem_[at];
  }
  bool open(std::int32_t s) const { return rem_[static_cast<std::size_t>(s)] > 0; }
  bool crossed(std::int32_t s) const { return crossing_[static_cast<std::size_t>(s)] > 0; }
  std::int64_t on_floor(std::int32_t s) const { return on_floor_[static_cast<std::size_t>(s)]; }
  bool placed(std::uint32_t i) const { return placed_[i] != 0; }
  std::int64_t lowest(std::uint32_t i) const { return lowest_[i]; }
  std::span<const std::uint32_t> members(std::int32_t s) const {
    const auto at = static_cast<std::size_t>(s);
    return {members_.data() + members_of_[at], members_of_[at + 1] - members_of_[at]};
  }
  std::uint32_t items_in(Range range) const;  // unplaced
  StateKey key_of(Range range) const;

  std::int32_t bucket(std::int32_t s) const {
    if (task_.sections <= SectionSet::kBuckets) return s;
    return static_cast<std::int32_t>(std::int64_t{s} * SectionSet::kBuckets / task_.sections);
  }
  SectionSet span_of(std::uint32_t i) const;
  // The state of s follows from its own floor and items and, for every item, from the section that
  // keeps it where it is.
  void explain(std::int32_t s, SectionSet& out) const;

  // The next height above its floor that any item of s could have; adds what that follows from.
  std::int64_t next_height(Range range, std::int32_t s, SectionSet& blamed);

 private:
  struct Change {
    std::int64_t* where;
    std::int64_t old;
  };

  void index_members();
  void index_obstacles();
  void reset();
  void set(std::int64_t& where, std::int64_t value) {
    trail_.push_back({&where, where});
    where = value;
  }
  void push(std::int32_t section) {
    char& queued = queued_[static_cast<std::size_t>(section)];
    if (queued) return;
    queued = 1;
    queue_.push_back(section);
  }
  void clear_queue() {
    for (const std::int32_t s : queue_) queued_[static_cast<std::size_t>(s)] = 0;
    queue_.clear();
  }
  std::int64_t lift(std::uint32_t i, std::int64_t x) const;
  bool raise_item(std::uint32_t i, std::int64_t floor, std::int32_t by);
  bool settle_section(std::int32_t s);
  bool propagate();
  std::int64_t next_rest(Range range, std::int32_t s, std::uint32_t i, SectionSet& blamed);

  CoverTask task_;
  std::vector<std::uint32_t> members_of_;
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t> starts_;  // items that begin before section s
  std::vector<std::vector<std::uint32_t>> obstacles_;
  std::vector<std::uint64_t> item_keys_;
  std::vector<std::uint64_t> section_keys_;

  std::vector<std::int64_t> floor_;
  std::vector<std::int64_t> rem_;
  std::vector<std::int64_t> on_floor_;  // items whose lowest place is the floor
  std::vector<std::int64_t> crossing_;  // unplaced items alive in s-1 and in s
  std::vector<std::int64_t> begun_;     // hash of the unplaced items that begin in s
  std::vector<std::int64_t> lowest_;
  std::vector<std::int64_t> held_by_;  // the section whose floor sets lowest_
  std::vector<std::int64_t> placed_;
  std::vector<Change> trail_;
  std::vector<std::int32_t> queue_;
  std::vector<char> queued_;
  Trace trace_;
  std::int32_t failed_section_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace plimsoll::pack
