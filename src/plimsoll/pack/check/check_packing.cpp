#include "plimsoll/pack/check/check_packing.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace plimsoll::pack {
namespace {

// Bytes [lo, hi) of a memory that a buffer holds for a while.
struct Box {
  std::size_t buffer;
  Interval<std::int64_t> time;
  std::int64_t lo, hi;
};

class Checker {
 public:
  // Needs what check_numbers() checks.
  Checker(const Problem& problem, const Packing& packing) : problem_(problem), packing_(packing) {
    class_.resize(problem.size());
    std::iota(class_.begin(), class_.end(), std::size_t{0});
    for (const auto& members : problem.colocated) {
      for (const BufferId id : members) class_[id.index()] = members.front().index();
    }
    auto gap = problem.gaps.begin();
    boxes_.reserve(problem.size() + 2 * problem.gaps.size());
    for (std::size_t i = 0; i < problem.size(); ++i) {
      const Buffer& buffer = problem.buffers[i];
      const std::size_t before = boxes_.size();
      std::int64_t from = buffer.lifetime.begin;
      for (; gap != problem.gaps.end() && gap->buffer == BufferId(i); ++gap) {
        add_box(i, {from, gap->time.begin}, {0, buffer.size.value});
        add_box(i, gap->time, gap->window);
        from = gap->time.end;
      }
      add_box(i, {from, buffer.lifetime.end}, {0, buffer.size.value});
      holds_bytes_.push_back(boxes_.size() > before);
    }
  }

  static Status check_numbers(const Problem& problem, const Packing& packing) {
    if (packing.offsets.size() != problem.size())
      return bad_input("{} offsets for {} buffers", packing.offsets.size(), problem.size());
    if (!packing.memories.empty() && packing.memories.size() != problem.size())
      return bad_input("{} memories for {} buffers", packing.memories.size(), problem.size());
    for (std::size_t i = 0; i < problem.size(); ++i) {
      const std::int64_t at = packing.offsets[i].value;
      if (at < 0 || at > kLargest)
        return bad_input("buffer '{}': offset {} is {}", problem.name(BufferId(i)), at,
                         at < 0 ? "negative" : "above 2^62");
    }
    return {};
  }

  Status check_places() const {
    for (std::size_t i = 0; i < problem_.size(); ++i) PLIMSOLL_RETURN_IF_ERROR(check_place(i));
    for (const auto& members : problem_.colocated) PLIMSOLL_RETURN_IF_ERROR(check_class(members));
    for (const auto& group : problem_.contiguous) PLIMSOLL_RETURN_IF_ERROR(check_group(group));
    return check_heights();
  }

  std::vector<Bytes> heights() const {
    std::vector<Bytes> out(problem_.memories.size(), Bytes(0));
    for (const Box& box : boxes_) out[memory(box)] = std::max(out[memory(box)], Bytes(box.hi));
    return out;
  }

  Status check_every_pair() const {
    for (const Box& a : boxes_) {
      for (const Box& b : boxes_) {
        if (memory(a) != memory(b) || class_of(a) == class_of(b) || !meet(a, b)) continue;
        if (a.lo < b.hi && b.lo < a.hi) return overlap(a, b);
        if (end_of(a) == ArenaEnd::kFront && end_of(b) == ArenaEnd::kBack && a.hi > b.lo)
          return wrong_side(a, b);
      }
    }
    return {};
  }

  // Space runs. In a right packing the boxes over one byte come one after another in time, but for
  // members of one class; so whoever does not meet its neighbours meets nobody beyond them.
  Status check_overlaps() const {
    // Each address beside its box: a million are sorted without looking at any box.
    std::vector<std::pair<std::int64_t, const Box*>> rising, falling;
    rising.reserve(boxes_.size());
    falling.reserve(boxes_.size());
    for (const Box& box : boxes_) {
      rising.emplace_back(box.lo, &box);
      falling.emplace_back(box.hi, &box);
    }
    std::sort(rising.begin(), rising.end());
    std::sort(falling.begin(), falling.end());
    std::vector<std::set<std::pair<__int128, const Box*>>> here(problem_.memories.size());
    auto gone = falling.begin();
    for (const auto& [lo, box] : rising) {
      for (; gone->first <= lo; ++gone)
        here[memory(*gone->second)].erase({start(*gone->second), gone->second});
      auto& boxes = here[memory(*box)];
      const auto at = boxes.insert({start(*box), box}).first;
      const Box* hit = first_met(*box, std::next(at), boxes.end());
      if (hit == nullptr) hit = first_met(*box, std::make_reverse_iterator(at), boxes.rend());
      if (hit != nullptr) return overlap(*box, *hit);
    }
    return {};
  }

  // Time runs. The highest front buffer alive must end below the lowest back buffer alive.
  Status check_ends() const {
    if (problem_.ends.empty()) return {};
    if (problem_.clocks.streams > 0) return check_every_pair();
    std::vector<std::tuple<std::int64_t, bool, const Box*>> events;  // false: its end, comes first
    for (const Box& box : boxes_) {
      events.emplace_back(box.time.begin, true, &box);
      events.emplace_back(box.time.end, false, &box);
    }
    std::sort(events.begin(), events.end());
    using Limits = std::set<std::pair<std::int64_t, const Box*>>;
    std::vector<Limits> tops(problem_.memories.size()), bottoms(problem_.memories.size());
    for (const auto& [time, begins, box] : events) {
      if (end_of(*box) == ArenaEnd::kAny) continue;
      const bool front = end_of(*box) == ArenaEnd::kFront;
      Limits& top = tops[memory(*box)];
      Limits& bottom = bottoms[memory(*box)];
      const std::pair limit{front ? box->hi : box->lo, box};
      if (!begins) (front ? top : bottom).erase(limit);
      if (!begins) continue;
      (front ? top : bottom).insert(limit);
      if (!top.empty() && !bottom.empty() && top.rbegin()->first > bottom.begin()->first)
        return wrong_side(*top.rbegin()->second, *bottom.begin()->second);
    }
    return {};
  }

 private:
  std::size_t memory(std::size_t i) const {
    return packing_.memories.empty() ? 0 : packing_.memories[i];
  }
  std::size_t memory(const Box& box) const { return memory(box.buffer); }
  std::size_t class_of(const Box& box) const { return class_[box.buffer]; }
  std::int64_t low(std::size_t i) const { return packing_.offsets[i].value; }
  std::string name(std::size_t i) const { return problem_.name(BufferId(i)); }
  ArenaEnd end_of(const Box& box) const {
    return problem_.ends.empty() ? ArenaEnd::kAny : problem_.ends[box.buffer];
  }

  void add_box(std::size_t i, Interval<std::int64_t> time, Interval<std::int64_t> bytes) {
    const Box box{i, time, low(i) + bytes.begin, low(i) + bytes.end};
    const bool clocks = problem_.clocks.streams > 0;
    if (box.lo < box.hi && (clocks ? !over_before(box, box) : !time.empty())) boxes_.push_back(box);
  }

  // Is `a` out of the way whenever `b` comes?
  bool over_before(const Box& a, const Box& b) const {
    const auto streams = static_cast<std::size_t>(problem_.clocks.streams);
    if (streams == 0) return a.time.end <= b.time.begin;
    const std::int64_t* ready = &problem_.clocks.ready[b.buffer * streams];
    return std::equal(ready, ready + streams, &problem_.clocks.released[a.buffer * streams],
                      std::greater_equal<>());
  }
  bool meet(const Box& a, const Box& b) const { return !over_before(a, b) && !over_before(b, a); }

  // Boxes that come one after another do so in the order of these numbers.
  __int128 start(const Box& box) const {
    const auto streams = static_cast<std::size_t>(problem_.clocks.streams);
    if (streams == 0) return box.time.begin;
    const auto ready =
        problem_.clocks.ready.begin() + static_cast<std::ptrdiff_t>(box.buffer * streams);
    return std::accumulate(ready, ready + static_cast<std::ptrdiff_t>(streams), __int128{0});
  }

  // The nearest neighbours that are not of the box's own class, and those of the same class behind.
  template <typename Place>
  const Box* first_met(const Box& box, Place at, Place end) const {
    while (at != end && class_of(*at->second) == class_of(box)) ++at;
    for (const Place nearest = at; at != end; ++at) {
      if (class_of(*at->second) != class_of(*nearest->second)) break;
      if (meet(box, *at->second)) return at->second;
    }
    return nullptr;
  }

  Status check_place(std::size_t i) const {
    const Buffer& buffer = problem_.buffers[i];
    const std::int64_t at = low(i);
    if (at % buffer.alignment != 0)
      return bad_input("buffer '{}': offset {} is no multiple of {}", name(i), at,
                       buffer.alignment);
    if (buffer.fixed && buffer.fixed->value != at)
      return bad_input("buffer '{}': offset {}, but it is fixed at {}", name(i), at,
                       buffer.fixed->value);
    if (memory(i) >= problem_.memories.size())
      return bad_input("buffer '{}': there is no memory {}", name(i), memory(i));
    const Memory& home = problem_.memories[memory(i)];
    if (!problem_.may_live_in.empty() && !(problem_.may_live_in[i] >> memory(i) & 1))
      return bad_input("buffer '{}': may not live in memory '{}'", name(i), home.name);
    const std::int64_t end = at + buffer.size.value;
    if (home.slab && holds_bytes_[i] && at / home.slab->value != (end - 1) / home.slab->value)
      return bad_input("buffer '{}': [{}, {}) crosses a boundary of slabs of {}", name(i), at, end,
                       home.slab->value);
    return {};
  }

  Status check_class(const std::vector<BufferId>& members) const {
    for (const BufferId id : members) {
      const std::size_t i = id.index(), first = members.front().index();
      if (low(i) != low(first))
        return bad_input("buffer '{}': offset {}, but co-located '{}' is at {}", name(i), low(i),
                         name(first), low(first));
      if (memory(i) != memory(first))
        return bad_input("buffer '{}': lives apart from its group", name(i));
    }
    return {};
  }

  Status check_group(const std::vector<BufferId>& group) const {
    if (group.empty()) return {};
    const std::size_t first = group.front().index();
    const auto& slab = problem_.memories[memory(first)].slab;
    std::int64_t expected = low(first);
    std::optional<std::int64_t> slab_of_all;
    for (const BufferId id : group) {
      const std::size_t i = id.index();
      const Buffer& buffer = problem_.buffers[i];
      if (low(first) % buffer.alignment != 0)
        return bad_input("buffer '{}': its group starts at {}, no multiple of {}", name(i),
                         low(first), buffer.alignment);
      expected = (expected + buffer.alignment - 1) / buffer.alignment * buffer.alignment;
      if (low(i) != expected)
        return bad_input("buffer '{}': offset {}, but its group puts it at {}", name(i), low(i),
                         expected);
      expected += buffer.size.value;
      if (memory(i) != memory(first))
        return bad_input("buffer '{}': lives apart from its group", name(i));
      if (!slab || !holds_bytes_[i]) continue;
      if (slab_of_all.value_or(low(i) / slab->value) != low(i) / slab->value)
        return bad_input("buffer '{}': at {} its group crosses a boundary of slabs of {}", name(i),
                         low(i), slab->value);
      slab_of_all = low(i) / slab->value;
    }
    return {};
  }

  Status check_heights() const {
    const std::vector<Bytes> found = heights();
    for (std::size_t m = 0; m < found.size(); ++m) {
      const Memory& memory = problem_.memories[m];
      if (m < packing_.heights.size() && packing_.heights[m] != found[m])
        return bad_input("memory '{}': height is {}, the packing claims {}", memory.name,
                         found[m].value, packing_.heights[m].value);
      if (packing_.fits() && memory.capacity && found[m] > *memory.capacity)
        return bad_input("memory '{}': height {} is above its capacity {}", memory.name,
                         found[m].value, memory.capacity->value);
    }
    return {};
  }

  Status overlap(const Box& a, const Box& b) const {
    return bad_input("buffers '{}' and '{}' are alive together and overlap: [{}, {}) and [{}, {})",
                     name(a.buffer), name(b.buffer), a.lo, a.hi, b.lo, b.hi);
  }
  Status wrong_side(const Box& front, const Box& back) const {
    return bad_input("front buffer '{}' at [{}, {}) is above back buffer '{}' at [{}, {})",
                     name(front.buffer), front.lo, front.hi, name(back.buffer), back.lo, back.hi);
  }

  const Problem& problem_;
  const Packing& packing_;
  std::vector<std::size_t> class_;  // by buffer: the first of its co-located class, or itself
  std::vector<bool> holds_bytes_;   // by buffer: at any time
  std::vector<Box> boxes_;
};

}  // namespace

std::vector<Bytes> packed_heights(const Problem& problem, const Packing& packing) {
  return Checker(problem, packing).heights();
}

Status check_packing_slowly(const Problem& problem, const Packing& packing) {
  PLIMSOLL_RETURN_IF_ERROR(Checker::check_numbers(problem, packing));
  const Checker checker(problem, packing);
  PLIMSOLL_RETURN_IF_ERROR(checker.check_places());
  return checker.check_every_pair();
}

Status check_packing(const Problem& problem, const Packing& packing) {
  PLIMSOLL_RETURN_IF_ERROR(Checker::check_numbers(problem, packing));
  const Checker checker(problem, packing);
  PLIMSOLL_RETURN_IF_ERROR(checker.check_places());
  PLIMSOLL_RETURN_IF_ERROR(checker.check_overlaps());
  return checker.check_ends();
}

}  // namespace plimsoll::pack
