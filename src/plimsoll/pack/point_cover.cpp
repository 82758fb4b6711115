#include "plimsoll/pack/point_cover.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/failed_states.h"

namespace plimsoll::pack {
namespace {

// Run times have a heavy tail: many short dives beat few long ones. Limits grow slowly, and only after
// kPatience dives fast enough to end in a proof.
constexpr std::int64_t kFirstLimit = 100;
constexpr std::int64_t kPatience = 300;

// The value of a candidate, in nats of width: chance counts most, so that dives differ; then how well it
// closes with what stands beside it; then how long it lives.
constexpr double kChance = 30;
constexpr double kSnugness = 6;
constexpr double kLevelSide = 2;   // its top is level with what stands beside it
constexpr double kLowSide = 1;     // what stands beside it is higher
constexpr double kHighSide = 0.3;  // it stands out above that

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

class PointCover::Search {
 public:
  Search(CoverTask task, const CoverOptions& options)
      : task_(std::move(task)), options_(options), random_(options.seed) {
    index_members();
    weigh_items();
    reset();
  }

  CoverResult run(Budget& budget, std::int64_t node_limit) {
    budget_ = &budget;
    const std::int64_t last_node = nodes_ + node_limit;
    CoverResult result = CoverResult::kLimit;
    while (result == CoverResult::kLimit && nodes_ < last_node && !budget.over()) {
      choose_value_order();
      std::int64_t limit = kFirstLimit * (1 + dives_ / 6);
      if (dives_ > kPatience) limit *= 1 + (dives_ - kPatience) / 10;
      dive_end_ = std::min(nodes_ + limit, last_node);
      ++dives_;
      result = dive();
    }
    return result;
  }

  void set_limits(std::span<const std::int64_t> ceilings, std::span<const std::int64_t> highest) {
    bool raised = false;
    for (std::size_t s = 0; s < ceilings.size(); ++s) {
      raised = raised || ceilings[s] > task_.ceilings[s];
      task_.ceilings[s] = ceilings[s];
    }
    for (std::size_t i = 0; i < highest.size(); ++i) {
      raised = raised || highest[i] > task_.items[i].highest;
      task_.items[i].highest = highest[i];
    }
    if (raised) failed_.clear();
    dives_ = 0;
  }

  std::span<const std::int64_t> places() const { return found_; }
  std::int64_t nodes() const { return nodes_; }

 private:
  struct Change {
    std::int64_t* where;
    std::int64_t old;
  };
  using Range = Interval<std::int32_t>;

  // What a step changed, and what its consequences follow from.
  struct Trace {
    SectionSet direct;   // sections it set itself
    SectionSet derived;  // sections that propagation raised or found too full
    SectionSet because;  // sections whose state made it do so
  };

  std::int32_t bucket(std::int32_t s) const {
    if (task_.sections <= SectionSet::kBuckets) return s;
    return static_cast<std::int32_t>(std::int64_t{s} * SectionSet::kBuckets / task_.sections);
  }

  // The state of s follows from its own floor and items and, for every item, from the section that
  // keeps it where it is.
  void explain(std::int32_t s, SectionSet& out) const {
    out.add(bucket(s));
    for (const std::uint32_t i : members(s)) {
      if (!placed_[i]) out.add(bucket(static_cast<std::int32_t>(held_by_[i])));
    }
  }

  void index_members() {
    const auto sections = static_cast<std::size_t>(task_.sections);
    members_of_.assign(sections + 1, 0);
    starts_.assign(sections + 1, 0);
    std::stable_sort(task_.items.begin(), task_.items.end(),
                     [](const CoverItem& a, const CoverItem& b) { return a.first < b.first; });
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

  void index_obstacles() {
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

  void reset() {
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
      for (auto s = static_cast<std::size_t>(item.first); s < static_cast<std::size_t>(item.last); ++s) {
        rem_[s] += item.size;
        if (s > static_cast<std::size_t>(item.first)) ++crossing_[s];
      }
    }
    found_.assign(n, 0);
    queue_.clear();
    queued_.assign(sections, 0);
  }

  CoverResult dive() {
    reset();
    for (std::int32_t s = 0; s < task_.sections; ++s) push(s);
    for (std::size_t i = 0; i < task_.items.size(); ++i) {
      if (!raise_item(static_cast<std::uint32_t>(i), 0, task_.items[i].first)) return CoverResult::kImpossible;
    }
    if (!propagate()) return CoverResult::kImpossible;
    return solve_range({0, task_.sections});
  }

  void set(std::int64_t& where, std::int64_t value) {
    trail_.push_back({&where, where});
    where = value;
  }
  void undo_to(std::size_t mark) {
    while (trail_.size() > mark) {
      *trail_.back().where = trail_.back().old;
      trail_.pop_back();
    }
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
  std::span<const std::uint32_t> members(std::int32_t s) const {
    const auto at = static_cast<std::size_t>(s);
    return {members_.data() + members_of_[at], members_of_[at + 1] - members_of_[at]};
  }

  std::int64_t lift(std::uint32_t i, std::int64_t x) const {
    const CoverItem& item = task_.items[i];
    if (item.fixed >= 0) return x <= item.fixed ? item.fixed : kLargest;
    x = task_.model->lift(item.body, x);
    for (const std::uint32_t other : obstacles_[i]) {
      const CoverItem& fixed = task_.items[other];
      if (fixed.fixed >= x + item.size) break;
      if (fixed.fixed + fixed.size > x)
        x = task_.model->lift(item.body, fixed.fixed + fixed.size);
    }
    return x;
  }

  // The item cannot lie below `floor`, that of section `by`; sections in which it was the last one on the
  // floor rise.
  bool raise_item(std::uint32_t i, std::int64_t floor, std::int32_t by) {
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

  bool settle_section(std::int32_t s) {
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

  bool propagate() {
    while (!queue_.empty()) {
      const std::int32_t s = queue_.back();
      queue_.pop_back();
      queued_[static_cast<std::size_t>(s)] = 0;
      if (!settle_section(s)) {
        explain(s, trace_.because);
        clear_queue();
        return false;
      }
    }
    return true;
  }

  bool place(std::uint32_t i, std::int64_t x) {
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

  CoverResult solve_range(Range range) {
    if (!options_.decompose) return solve_whole(range);
    Range first{};
    std::vector<std::pair<std::uint32_t, Range>> parts;
    std::int32_t s = range.begin;
    int count = 0;
    while (s < range.end) {
      if (rem_[static_cast<std::size_t>(s)] == 0) {
        ++s;
        continue;
      }
      std::int32_t end = s + 1;
      while (end < range.end && crossing_[static_cast<std::size_t>(end)] > 0) ++end;
      if (++count == 1) {
        first = {s, end};
      } else {
        if (count == 2) parts.emplace_back(items_in(first), first);
        parts.emplace_back(items_in({s, end}), Range{s, end});
      }
      s = end;
    }
    if (count == 0) return CoverResult::kFound;
    if (count == 1) return solve_part(first);
    std::sort(parts.begin(), parts.end());
    for (const auto& [size, part] : parts) {
      const CoverResult result = solve_part(part);
      if (result != CoverResult::kFound) return result;
    }
    return CoverResult::kFound;
  }

  CoverResult solve_whole(Range range) {
    for (auto s = range.begin; s < range.end; ++s) {
      if (rem_[static_cast<std::size_t>(s)] > 0) return solve_part(range);
    }
    return CoverResult::kFound;
  }

  std::uint32_t items_in(Range range) const {
    std::uint32_t count = 0;
    for (auto i = starts_[static_cast<std::size_t>(range.begin)];
         i < starts_[static_cast<std::size_t>(range.end)]; ++i)
      count += !placed_[i];
    return count;
  }

  StateKey key_of(Range range) const {
    std::uint64_t a = 0x1234;
    std::uint64_t b = 0x9e37;
    for (auto s = range.begin; s < range.end; ++s) {
      const auto at = static_cast<std::size_t>(s);
      if (rem_[at] == 0) continue;
      const auto floor = static_cast<std::uint64_t>(floor_[at]);
      const auto items = static_cast<std::uint64_t>(begun_[at]);
      const std::uint64_t word = mix((section_keys_[at] ^ floor * 0x9e3779b97f4a7c15ULL) + items);
      a += word;
      b = (b ^ word) * 0xd6e8feb86659fd93ULL + items;
      b ^= b >> 32;
    }
    return {a ^ static_cast<std::uint64_t>(range.begin), b};
  }

  // The section to branch on: inside a valley, with the fewest branches.
  std::int32_t choose_section(Range range) const {
    std::int32_t best = -1;
    double best_key = 0;
    for (auto x = range.begin; x < range.end;) {
      const auto at = static_cast<std::size_t>(x);
      const std::int64_t height = floor_[at];
      auto y = x + 1;
      if (rem_[at] == 0) {
        x = y;
        continue;
      }
      while (y < range.end && open(y) && floor_[static_cast<std::size_t>(y)] == height) ++y;
      const bool left = x == range.begin || !open(x - 1) || floor_[at - 1] > height;
      const bool right = y == range.end || !open(y) || floor_[static_cast<std::size_t>(y)] > height;
      for (auto s = x; left && right && s < y; ++s) {
        const double key = branching_key(s);
        if (best < 0 || key < best_key) best = s, best_key = key;
      }
      x = y;
    }
    return best;
  }
  bool open(std::int32_t s) const { return rem_[static_cast<std::size_t>(s)] > 0; }

  double branching_key(std::int32_t s) const {
    const auto at = static_cast<std::size_t>(s);
    const auto ceiling = static_cast<double>(task_.ceilings[at]);
    const std::int64_t slack = task_.ceilings[at] - floor_[at] - rem_[at];
    const double branches = static_cast<double>(on_floor_[at]) * 1000 + (slack > 0 ? 1500 : 0) +
                            static_cast<double>(slack) / ceiling * 100;
    if (options_.fail_first) return branches;
    return static_cast<double>(floor_[at]) / ceiling * 1e9 + branches;
  }

  CoverResult solve_part(Range range) {
    work_ += range.end - range.begin + 20;
    if (++nodes_ > dive_end_ || !budget_->spend(std::exchange(work_, 0))) return CoverResult::kLimit;
    const StateKey key = key_of(range);
    if (options_.memo && known_to_fail(key)) return CoverResult::kImpossible;
    const std::int32_t s = choose_section(range);
    const CoverResult result = branch(range, s);
    if (result == CoverResult::kImpossible && options_.memo) failed_.insert(key, blamed_.hull());
    return result;
  }

  bool known_to_fail(StateKey key) {
    const SectionSet::Hull* hull = failed_.find(key);
    if (!hull) return false;
    blamed_ = {};
    blamed_.add(*hull);
    return true;
  }

  // Tries whatever can cover the point above the floor of s. After a failure blamed_ says which sections
  // it follows from; a step that touched none of them is not to blame, and neither is this node.
  CoverResult branch(Range range, std::int32_t s) {
    const std::int64_t height = floor_[static_cast<std::size_t>(s)];
    SectionSet blamed;
    explain(s, blamed);
    for (const std::uint32_t i : candidates(s)) {
      const std::size_t mark = trail_.size();
      const bool possible = place(i, height);
      const CoverResult result = follow(possible, range, mark);
      if (result == CoverResult::kFound) found_[i] = height;
      if (result != CoverResult::kImpossible || innocent_) return result;
      blamed.add(blamed_);
    }
    const CoverResult result = waste(range, s, blamed);
    if (result != CoverResult::kImpossible || innocent_) return result;
    blamed_.add(blamed);
    return result;
  }

  // Solves what is left after a step and takes the step back. blamed_: what the failure follows from;
  // innocent_: it would have failed without the step.
  CoverResult follow(bool possible, Range range, std::size_t mark) {
    const Trace trace = trace_;
    CoverResult result = CoverResult::kImpossible;
    innocent_ = false;
    if (possible) {
      result = solve_range(range);
      const bool derived = trace.derived.meets(blamed_);
      innocent_ = options_.backjump && result == CoverResult::kImpossible && !derived &&
                  !trace.direct.meets(blamed_);
      if (derived) blamed_.add(trace.because);
    } else {
      blamed_ = trace.because;
    }
    undo_to(mark);
    return result;
  }

  SectionSet span_of(std::uint32_t i) const {
    SectionSet span;
    for (auto s = task_.items[i].first; s < task_.items[i].last; ++s) span.add(bucket(s));
    return span;
  }

  // Items that can lie right on the floor of s, best first, one of each kind.
  std::vector<std::uint32_t> candidates(std::int32_t s) const {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t i : members(s)) {
      if (!placed_[i] && lowest_[i] == floor_[static_cast<std::size_t>(s)]) out.push_back(i);
    }
    rank(out);
    const auto twin = [&](std::uint32_t a, std::uint32_t b) {
      const CoverItem& x = task_.items[a];
      const CoverItem& y = task_.items[b];
      return x.first == y.first && x.last == y.last && x.size == y.size && x.fixed < 0 &&
             y.fixed < 0 && x.highest == y.highest &&
             task_.model->bodies[x.body].modulus == task_.model->bodies[y.body].modulus &&
             task_.model->bodies[x.body].residue == task_.model->bodies[y.body].residue;
    };
    std::size_t kept = 0;
    for (std::size_t k = 0; k < out.size(); ++k) {
      bool repeated = false;
      for (std::size_t j = 0; j < kept && !repeated; ++j) repeated = twin(out[j], out[k]);
      if (!repeated) out[kept++] = out[k];
    }
    out.resize(kept);
    return out;
  }

  void rank(std::vector<std::uint32_t>& items) const {
    if (items.size() < 2) return;
    ranked_.clear();
    for (const std::uint32_t i : items)
      ranked_.emplace_back(-value_[i] - (options_.snug_cover ? kSnugness * snugness(i) : 0), i);
    std::sort(ranked_.begin(), ranked_.end());
    for (std::size_t k = 0; k < items.size(); ++k) items[k] = ranked_[k].second;
  }

  // How well an item on the floor closes with its neighbours in time.
  double snugness(std::uint32_t i) const {
    const CoverItem& item = task_.items[i];
    const std::int64_t top = lowest_[i] + item.size;
    const auto side = [&](std::int64_t beside) {
      if (beside == top) return kLevelSide;
      if (beside > top) return kLowSide;
      return beside > lowest_[i] ? kHighSide : 0.0;
    };
    const auto first = static_cast<std::size_t>(item.first);
    const auto last = static_cast<std::size_t>(item.last);
    return side(first == 0 ? task_.ceilings[first] : floor_[first - 1]) +
           side(last == floor_.size() ? task_.ceilings[last - 1] : floor_[last]);
  }

  // Nothing lies right on the floor of s: raise it to the next height any of its items could have.
  CoverResult waste(Range range, std::int32_t s, SectionSet& blamed) {
    const auto at = static_cast<std::size_t>(s);
    const std::int64_t slack = task_.ceilings[at] - floor_[at] - rem_[at];
    blamed_ = {};
    innocent_ = false;
    if (slack <= 0) return CoverResult::kImpossible;
    const std::int64_t next = next_height(range, s, blamed);
    if (next - floor_[at] > slack) return CoverResult::kImpossible;
    const std::size_t mark = trail_.size();
    trace_ = {};
    trace_.direct.add(bucket(s));
    set(floor_[at], next);
    set(on_floor_[at], 0);
    push(s);
    const bool possible = propagate();
    return follow(possible, range, mark);
  }

  std::int64_t next_height(Range range, std::int32_t s, SectionSet& blamed) {
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
  std::int64_t next_rest(Range range, std::int32_t s, std::uint32_t i, SectionSet& blamed) {
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

  void weigh_items() {
    std::vector<std::int64_t> load(static_cast<std::size_t>(task_.sections), 0);
    for (const CoverItem& item : task_.items) {
      for (auto s = item.first; s < item.last; ++s) load[static_cast<std::size_t>(s)] += item.size;
    }
    for (const CoverItem& item : task_.items) {
      std::int64_t most = 1;
      for (auto s = item.first; s < item.last; ++s)
        most = std::max(most, load[static_cast<std::size_t>(s)]);
      weights_.push_back({std::log(item.duration), std::log(static_cast<double>(item.size)),
                          std::log(static_cast<double>(most))});
    }
  }

  // Longest first, largest area first, most contended first; then chance.
  void choose_value_order() {
    value_.resize(task_.items.size());
    for (std::size_t i = 0; i < value_.size(); ++i) {
      const auto& [width, size, contention] = weights_[i];
      switch (dives_) {
        case 0: value_[i] = 1000 * width + size; break;
        case 1: value_[i] = 1000 * (width + size) + width; break;
        case 2: value_[i] = 1e5 * contention + 10 * width + size; break;
        default: value_[i] = width + kChance * random_.uniform();
      }
      const std::int64_t hint = task_.items[i].hint;
      if (hint >= 0 && dives_ == 0) value_[i] = 1e12 - static_cast<double>(hint);
    }
  }

  CoverTask task_;
  CoverOptions options_;
  Random random_;
  Budget* budget_ = nullptr;
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

  struct Weights {
    double width, size, contention;  // logarithms
  };
  std::vector<Weights> weights_;
  std::vector<double> value_;
  mutable std::vector<std::pair<double, std::uint32_t>> ranked_;
  Trace trace_;         // of the last step
  SectionSet blamed_;   // what the last failure follows from
  bool innocent_ = false;
  std::vector<std::int64_t> found_;
  FailedStates failed_;
  std::int64_t nodes_ = 0;
  std::int64_t dive_end_ = 0;
  std::int64_t dives_ = 0;
  std::int64_t work_ = 0;
};

PointCover::PointCover(CoverTask task, const CoverOptions& options)
    : search_(std::make_unique<Search>(std::move(task), options)) {}
PointCover::~PointCover() = default;
PointCover::PointCover(PointCover&&) noexcept = default;

CoverResult PointCover::run(Budget& budget, std::int64_t node_limit) {
  return search_->run(budget, node_limit);
}
void PointCover::set_limits(std::span<const std::int64_t> ceilings,
                            std::span<const std::int64_t> highest) {
  search_->set_limits(ceilings, highest);
}
std::span<const std::int64_t> PointCover::places() const { return search_->places(); }
std::int64_t PointCover::nodes() const { return search_->nodes(); }

CoverTask make_cover_task(const BodyModel& model, std::span<const std::uint32_t> bodies,
                          Interval<std::int32_t> sections, std::int64_t capacity) {
  CoverTask task;
  task.model = &model;
  task.sections = sections.end - sections.begin;
  const auto count = static_cast<std::size_t>(task.sections);
  task.floors.assign(count, 0);
  task.ceilings.assign(count, capacity / model.unit + (capacity % model.unit != 0));
  for (const std::uint32_t b : bodies) {
    const Body& body = model.bodies[b];
    task.items.push_back({body.first - sections.begin, body.last - sections.begin, body.height,
                          model.ceiling(b, capacity), body.fixed, body.hint, body.duration, b});
  }
  std::stable_sort(task.items.begin(), task.items.end(),
                   [](const CoverItem& a, const CoverItem& b) { return a.first < b.first; });
  return task;
}

}  // namespace plimsoll::pack
