#include "plimsoll/pack/exact/cover_state.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "plimsoll/base/random.h"

namespace plimsoll::pack {

CoverState::CoverState(CoverTask task) : task_(std::move(task)) {
  index_members();
  reset();
}

bool CoverState::set_limits(std::span<const std::int64_t> ceilings,
                            std::span<const std::int64_t> highest) {
  bool raised = false;
  for (std::size_t s = 0; s < ceilings.size(); ++s) {
    raised = raised || ceilings[s] > task_.ceilings[s];
    task_.ceilings[s] = ceilings[s];
  }
  for (std::size_t i = 0; i < highest.size(); ++i) {
    raised = raised || highest[i] > task_.items[i].highest;
    task_.items[i].highest = highest[i];
  }
  return raised;
}

void CoverState::index_members() {
  const auto sections = static_cast<std::size_t>(task_.sections);
  members_of_.assign(sections + 1, 0);
  starts_.assign(sections + 1, 0);
  for (const CoverItem& item : task_.items) {
    ++starts_[static_cast<std::size_t>(item.first) + 1];
    for (auto s = item.first; s < item.last; ++s) ++members_of_[static_cast<std::size_t>(s) + 1];
  }
  std::partial_sum(members_of_.begin(), members_of_.end(), members_of_.begin());
  std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
  members_.resize(members_of_.back());
  std::vector<std::uint32_t> next(members_of_.begin(), members_of_.end() - 1);
  for (std::uint32_t i = 0; i < task_.items.size(); ++i) {
    for (auto s = task_.items[i].first; s < task_.items[i].last; ++s)
      members_[next[static_cast<std::size_t>(s)]++] = i;
  }
  index_obstacles();
}

void CoverState::index_obstacles() {
  obstacles_.assign(task_.items.size(), {});
  std::uint64_t seed = 0x51ab0a7;
  for (std::size_t i = 0; i < task_.items.size(); ++i) {
    item_keys_.push_back(splitmix64(seed));
    if (task_.items[i].fixed < 0) continue;
    for (std::size_t j = 0; j < task_.items.size(); ++j) {
      const CoverItem& other = task_.items[j];
      if (j != i && other.first < task_.items[i].last && task_.items[i].first < other.last)
        obstacles_[j].push_back(static_cast<std::uint32_t>(i));
    }
  }
  for (auto& list : obstacles_) {
    std::sort(list.begin(), list.end(),
              [&](auto a, auto b) { return task_.items[a].fixed < task_.items[b].fixed; });
  }
  for (std::int32_t s = 0; s < task_.sections; ++s) section_keys_.push_back(splitmix64(seed));
}

void CoverState::reset() {
  const auto sections = static_cast<std::size_t>(task_.sections);
  const std::size_t n = task_.items.size();
  floor_ = task_.floors;
  rem_.assign(sections, 0);
  on_floor_.assign(sections, 0);
  crossing_.assign(sections + 1, 0);
  begun_.assign(sections, 0);
  lowest_.assign(n, -1);
  held_by_.resize(n);
  placed_.assign(n, 0);
  trail_.clear();
  for (std::size_t i = 0; i < n; ++i) {
    const CoverItem& item = task_.items[i];
    held_by_[i] = item.first;
    begun_[static_cast<std::size_t>(item.first)] ^= static_cast<std::int64_t>(item_keys_[i]);
    for (auto s = static_cast<std::size_t>(item.first); s < static_cast<std::size_t>(item.last);
         ++s) {
      rem_[s] += item.size;
      if (s > static_cast<std::size_t>(item.first)) ++crossing_[s];
    }
  }
  queue_.clear();
  queued_.assign(sections, 0);
}

bool CoverState::start() {
  reset();
  for (std::int32_t s = 0; s < task_.sections; ++s) push(s);
  for (std::size_t i = 0; i < task_.items.size(); ++i) {
    if (!raise_item(static_cast<std::uint32_t>(i), 0, task_.items[i].first)) return false;
  }
  return propagate();
}

std::int64_t CoverState::lift(std::uint32_t i, std::int64_t x) const {
  const CoverItem& item = task_.items[i];
  if (item.fixed >= 0) return x <= item.fixed ? item.fixed : kLargest;
  x = task_.model->lift(item.body, x);
  for (const std::uint32_t other : obstacles_[i]) {
    const CoverItem& fixed = task_.items[other];
    if (fixed.fixed >= x + item.size) break;
    if (fixed.fixed + fixed.size > x) x = task_.model->lift(item.body, fixed.fixed + fixed.size);
  }
  return x;
}

// The item cannot lie below `floor`, that of section `by`; sections in which it was the last one on
// the floor rise.
bool CoverState::raise_item(std::uint32_t i, std::int64_t floor, std::int32_t by) {
  const std::int64_t before = lowest_[i];
  if (floor <= before) return true;
  const std::int64_t now = lift(i, floor);
  if (now == before) return true;
  const CoverItem& item = task_.items[i];
  if (now > item.highest) return false;
  set(lowest_[i], now);
  if (held_by_[i] != by) set(held_by_[i], by);
  for (auto s = item.first; s < item.last; ++s) {
    const auto at = static_cast<std::size_t>(s);
    if (floor_[at] == before) {
      set(on_floor_[at], on_floor_[at] - 1);
      if (on_floor_[at] == 0) push(s);
    }
  }
  return true;
}

bool CoverState::settle_section(std::int32_t s) {
  const auto at = static_cast<std::size_t>(s);
  while (true) {
    std::int64_t least = kLargest;
    std::int64_t count = 0;
    for (const std::uint32_t i : members(s)) {
      if (placed_[i]) continue;
      if (lowest_[i] < floor_[at] && !raise_item(i, floor_[at], s)) return false;
      if (lowest_[i] < least) least = lowest_[i], count = 0;
      count += lowest_[i] == least;
    }
    work_ += static_cast<std::int64_t>(members(s).size());
    if (least == kLargest) return true;
    if (least + rem_[at] > task_.ceilings[at]) return false;
    const bool rises = least > floor_[at];
    if (rises) {
      explain(s, trace_.because);
      trace_.derived.add(bucket(s));
      set(floor_[at], least);
    }
    if (on_floor_[at] != count) set(on_floor_[at], count);
    if (!rises) return true;
  }
}

bool CoverState::propagate() {
  while (!queue_.empty()) {
    const std::int32_t s = queue_.back();
    queue_.pop_back();
    queued_[static_cast<std::size_t>(s)] = 0;
    if (!settle_section(s)) {
      explain(s, trace_.because);
      failed_section_ = s;
      clear_queue();
      return false;
    }
  }
  return true;
}

bool CoverState::place(std::uint32_t i, std::int64_t x) {
  const CoverItem& item = task_.items[i];
  trace_ = {};
  trace_.direct = span_of(i);
  set(placed_[i], 1);
  auto& begun = begun_[static_cast<std::size_t>(item.first)];
  set(begun, begun ^ static_cast<std::int64_t>(item_keys_[i]));
  for (auto s = item.first; s < item.last; ++s) {
    const auto at = static_cast<std::size_t>(s);
    set(floor_[at], x + item.size);
    set(rem_[at], rem_[at] - item.size);
    set(on_floor_[at], 0);
    if (s > item.first) set(crossing_[at], crossing_[at] - 1);
    push(s);
  }
  return propagate();
}

bool CoverState::raise_floor(std::int32_t s, std::int64_t height) {
  const auto at = static_cast<std::size_t>(s);
  trace_ = {};
  trace_.direct.add(bucket(s));
  set(floor_[at], height);
  set(on_floor_[at], 0);
  push(s);
  return propagate();
}

void CoverState::explain(std::int32_t s, SectionSet& out) const {
  out.add(bucket(s));
  for (const std::uint32_t i : members(s)) {
    if (!placed_[i]) out.add(bucket(static_cast<std::int32_t>(held_by_[i])));
  }
}

SectionSet CoverState::span_of(std::uint32_t i) const {
  SectionSet span;
  for (auto s = task_.items[i].first; s < task_.items[i].last; ++s) span.add(bucket(s));
  return span;
}

std::uint32_t CoverState::items_in(Range range) const {
  std::uint32_t count = 0;
  for (auto i = starts_[static_cast<std::size_t>(range.begin)];
       i < starts_[static_cast<std::size_t>(range.end)]; ++i)
    count += !placed_[i];
  return count;
}

StateKey CoverState::key_of(Range range) const {
  std::uint64_t a = 0x1234;
  std::uint64_t b = 0x9e37;
  for (auto s = range.begin; s < range.end; ++s) {
    const auto at = static_cast<std::size_t>(s);
    if (rem_[at] == 0) continue;
    const auto floor = static_cast<std::uint64_t>(floor_[at]);
    const auto items = static_cast<std::uint64_t>(begun_[at]);
    const std::uint64_t word = mix64((section_keys_[at] ^ floor * 0x9e3779b97f4a7c15ULL) + items);
    a += word;
    b = (b ^ word) * 0xd6e8feb86659fd93ULL + items;
    b ^= b >> 32;
  }
  return {a ^ static_cast<std::uint64_t>(range.begin), b};
}

std::int64_t CoverState::next_height(Range range, std::int32_t s, SectionSet& blamed) {
  const std::int64_t height = floor_[static_cast<std::size_t>(s)];
  std::int64_t next = kLargest;
  for (const std::uint32_t i : members(s)) {
    if (placed_[i]) continue;
    if (lowest_[i] > height) {
      next = std::min(next, lowest_[i]);
    } else {
      next = std::min(next, next_rest(range, s, i, blamed));
    }
  }
  return next;
}

// An item of s that does not lie on the floor rests on one that does not cover s.
std::int64_t CoverState::next_rest(Range range, std::int32_t s, std::uint32_t i,
                                   SectionSet& blamed) {
  const CoverItem& item = task_.items[i];
  const std::int64_t height = floor_[static_cast<std::size_t>(s)];
  if (item.fixed >= 0) return kLargest;
  std::int64_t next = kLargest;
  blamed.add(span_of(i));
  const auto from = starts_[static_cast<std::size_t>(range.begin)];
  const auto to = starts_[static_cast<std::size_t>(std::min(item.last, range.end))];
  for (auto c = from; c < to; ++c) {
    const CoverItem& other = task_.items[c];
    if (placed_[c] || other.last <= item.first || (other.first <= s && s < other.last)) continue;
    blamed.add(bucket(static_cast<std::int32_t>(held_by_[c])));
    const std::int64_t top = lowest_[c] + other.size;
    next = std::min(next, top <= height ? height + 1 : top);
  }
  work_ += static_cast<std::int64_t>(to - from);
  return next == kLargest ? next : lift(i, next);
}

}  // namespace plimsoll::pack
