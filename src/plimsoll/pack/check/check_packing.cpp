#include "plimsoll/pack/check/check_packing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

namespace plimsoll::pack {
namespace {

class Checker {
 public:
  Checker(const Problem& problem, const Packing& packing) : problem_(problem), packing_(packing) {}

  Status check_places() const {
    const std::size_t n = problem_.size();
    if (packing_.offsets.size() != n)
      return bad_input("{} offsets for {} buffers", packing_.offsets.size(), n);
    if (!packing_.memories.empty() && packing_.memories.size() != n)
      return bad_input("{} memories for {} buffers", packing_.memories.size(), n);
    for (std::size_t i = 0; i < n; ++i) {
      PLIMSOLL_RETURN_IF_ERROR(check_place(i));
    }
    PLIMSOLL_RETURN_IF_ERROR(check_groups());
    return check_heights();
  }

  std::vector<Bytes> heights() const {
    std::vector<Bytes> heights(problem_.memories.size(), Bytes(0));
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      for (const Box& box : boxes(i))
        heights[memory(i)] = std::max(heights[memory(i)], Bytes(box.hi));
    }
    return heights;
  }

  Status check_every_pair() const {
    for (std::size_t a = 0; a < problem_.size(); ++a) {
      for (std::size_t b = a + 1; b < problem_.size(); ++b) {
        if (same_class(a, b) || memory(a) != memory(b)) continue;
        for (const Box& mine : boxes(a)) {
          for (const Box& theirs : boxes(b)) {
            if (!boxes_meet(mine, theirs)) continue;
            if (mine.lo < theirs.hi && theirs.lo < mine.hi) return overlap(mine, theirs);
            PLIMSOLL_RETURN_IF_ERROR(check_ends(mine, theirs));
          }
        }
      }
    }
    return {};
  }

  // Time runs; the boxes alive stand sorted by their low end. In a right packing they are disjoint
  // (but for members of one class), so a newcomer can only hit the nearest below and above.
  Status sweep_time() const {
    std::vector<Box> all;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      for (const Box& box : boxes(i)) all.push_back(box);
    }
    std::vector<std::uint32_t> deaths(all.size());
    std::iota(deaths.begin(), deaths.end(), 0u);
    std::vector<std::uint32_t> births = deaths;
    std::sort(births.begin(), births.end(),
              [&](auto a, auto b) { return all[a].time.begin < all[b].time.begin; });
    std::sort(deaths.begin(), deaths.end(),
              [&](auto a, auto b) { return all[a].time.end < all[b].time.end; });
    Alive alive;
    std::size_t gone = 0;
    for (const std::uint32_t k : births) {
      for (; all[deaths[gone]].time.end <= all[k].time.begin; ++gone)
        leave(alive, all[deaths[gone]]);
      PLIMSOLL_RETURN_IF_ERROR(enter(alive, all[k]));
    }
    return {};
  }

  // Space runs; the buffers over one byte must be a chain in which each is out of the next one's
  // way.
  Status sweep_space() const {
    const auto streams = static_cast<std::size_t>(problem_.clocks.streams);
    std::vector<std::pair<__int128, std::uint32_t>> keys;
    std::vector<std::uint32_t> ups;
    for (std::uint32_t i = 0; i < problem_.size(); ++i) {
      __int128 sum = 0;
      for (std::size_t s = 0; s < streams; ++s) sum += problem_.clocks.ready[i * streams + s];
      keys.emplace_back(sum, i);
      if (problem_.buffers[i].size.value > 0 && ever_alive(problem_, BufferId(i))) ups.push_back(i);
    }
    std::vector<std::uint32_t> downs = ups;
    std::sort(ups.begin(), ups.end(), [&](auto a, auto b) { return low(a) < low(b); });
    std::sort(downs.begin(), downs.end(), [&](auto a, auto b) { return high(a) < high(b); });
    std::vector<std::set<std::pair<__int128, std::uint32_t>>> chains(problem_.memories.size());
    std::size_t gone = 0;
    for (const std::uint32_t i : ups) {
      for (; high(downs[gone]) <= low(i); ++gone)
        chains[memory(downs[gone])].erase(keys[downs[gone]]);
      auto& chain = chains[memory(i)];
      const auto here = chain.insert(keys[i]).first;
      if (here != chain.begin() && meet(problem_, BufferId(std::prev(here)->second), BufferId(i)))
        return overlap(box(i), box(std::prev(here)->second));
      if (std::next(here) != chain.end() &&
          meet(problem_, BufferId(std::next(here)->second), BufferId(i)))
        return overlap(box(i), box(std::next(here)->second));
    }
    return {};
  }

 private:
  struct Box {
    std::size_t buffer;
    Interval<std::int64_t> time;
    std::int64_t lo;
    std::int64_t hi;
  };
  struct Alive {
    std::set<std::tuple<std::size_t, std::int64_t, std::int64_t, std::size_t>> boxes;
    std::multiset<std::pair<std::size_t, std::int64_t>> front_tops;
    std::multiset<std::pair<std::size_t, std::int64_t>> back_bottoms;
  };

  std::size_t memory(std::size_t i) const {
    return packing_.memories.empty() ? 0 : packing_.memories[i];
  }
  std::int64_t low(std::size_t i) const { return packing_.offsets[i].value; }
  std::int64_t high(std::size_t i) const { return low(i) + problem_.buffers[i].size.value; }
  Box box(std::size_t i) const { return {i, problem_.buffers[i].lifetime, low(i), high(i)}; }

  std::vector<Box> boxes(std::size_t i) const {
    std::vector<Box> out;
    const Buffer& buffer = problem_.buffers[i];
    if (buffer.size.value == 0 || !ever_alive(problem_, BufferId(i))) return out;
    std::int64_t from = buffer.lifetime.begin;
    const auto add = [&](std::int64_t begin, std::int64_t end, std::int64_t lo, std::int64_t hi) {
      if (begin < end && lo < hi) out.push_back({i, {begin, end}, low(i) + lo, low(i) + hi});
    };
    auto gap = std::lower_bound(problem_.gaps.begin(), problem_.gaps.end(), BufferId(i),
                                [](const Gap& g, BufferId key) { return g.buffer < key; });
    for (; gap != problem_.gaps.end() && gap->buffer == BufferId(i); ++gap) {
      add(from, gap->time.begin, 0, buffer.size.value);
      add(gap->time.begin, gap->time.end, gap->window.begin, gap->window.end);
      from = gap->time.end;
    }
    if (problem_.clocks.streams > 0) return {box(i)};
    add(from, buffer.lifetime.end, 0, buffer.size.value);
    return out;
  }

  bool boxes_meet(const Box& a, const Box& b) const {
    if (problem_.clocks.streams > 0) return meet(problem_, BufferId(a.buffer), BufferId(b.buffer));
    return a.time.begin < b.time.end && b.time.begin < a.time.end;
  }

  bool same_class(std::size_t a, std::size_t b) const {
    if (problem_.colocated.empty()) return false;
    return class_[a] >= 0 && class_[a] == class_[b];
  }

  Status check_place(std::size_t i) const {
    const Buffer& buffer = problem_.buffers[i];
    const auto who = [&] { return problem_.name(BufferId(i)); };
    const std::int64_t at = low(i);
    if (at < 0) return bad_input("buffer '{}': offset {} is negative", who(), at);
    if (at > kLargest) return bad_input("buffer '{}': offset {} is above 2^62", who(), at);
    if (at % buffer.alignment != 0)
      return bad_input("buffer '{}': offset {} is no multiple of {}", who(), at, buffer.alignment);
    if (buffer.fixed && buffer.fixed->value != at)
      return bad_input("buffer '{}': offset {}, but it is fixed at {}", who(), at,
                       buffer.fixed->value);
    if (memory(i) >= problem_.memories.size())
      return bad_input("buffer '{}': there is no memory {}", who(), memory(i));
    if (!problem_.may_live_in.empty() && !(problem_.may_live_in[i] >> memory(i) & 1))
      return bad_input("buffer '{}': may not live in memory '{}'", who(),
                       problem_.memories[memory(i)].name);
    const auto& slab = problem_.memories[memory(i)].slab;
    if (slab && !boxes(i).empty() && at / slab->value != (at + buffer.size.value - 1) / slab->value)
      return bad_input("buffer '{}': [{}, {}) crosses a boundary of slabs of {}", who(), at,
                       high(i), slab->value);
    return {};
  }

  Status check_groups() const {
    for (const auto& members : problem_.colocated) {
      for (const BufferId id : members) {
        if (low(id.index()) != low(members.front().index()))
          return bad_input("buffer '{}': offset {}, but co-located '{}' is at {}",
                           problem_.name(id), low(id.index()), problem_.name(members.front()),
                           low(members.front().index()));
      }
    }
    for (const auto& group : problem_.contiguous) {
      std::int64_t expected = group.empty() ? 0 : low(group.front().index());
      for (const BufferId id : group) {
        const std::int64_t alignment = problem_.buffers[id.index()].alignment;
        if (!group.empty() && low(group.front().index()) % alignment != 0)
          return bad_input("buffer '{}': its group starts at {}, no multiple of {}",
                           problem_.name(id), low(group.front().index()), alignment);
        expected = (expected + alignment - 1) / alignment * alignment;
        if (low(id.index()) != expected)
          return bad_input("buffer '{}': offset {}, but its group puts it at {}", problem_.name(id),
                           low(id.index()), expected);
        expected += problem_.buffers[id.index()].size.value;
      }
      PLIMSOLL_RETURN_IF_ERROR(check_one_memory(group));
      PLIMSOLL_RETURN_IF_ERROR(check_one_slab(group));
    }
    for (const auto& members : problem_.colocated) {
      PLIMSOLL_RETURN_IF_ERROR(check_one_memory(members));
    }
    return {};
  }

  Status check_one_memory(const std::vector<BufferId>& members) const {
    for (const BufferId id : members) {
      if (memory(id.index()) != memory(members.front().index()))
        return bad_input("buffer '{}': lives apart from its group", problem_.name(id));
    }
    return {};
  }

  Status check_one_slab(const std::vector<BufferId>& group) const {
    if (group.empty()) return {};
    const auto& slab = problem_.memories[memory(group.front().index())].slab;
    if (!slab) return {};
    std::optional<std::int64_t> slab_of_all;
    for (const BufferId id : group) {
      if (boxes(id.index()).empty()) continue;
      const std::int64_t here = low(id.index()) / slab->value;
      if (slab_of_all.value_or(here) != here)
        return bad_input("buffer '{}': at {} its group crosses a boundary of slabs of {}",
                         problem_.name(id), low(id.index()), slab->value);
      slab_of_all = here;
    }
    return {};
  }

  Status check_heights() const {
    const std::vector<Bytes> heights = this->heights();
    for (std::size_t m = 0; m < heights.size(); ++m) {
      const Memory& memory = problem_.memories[m];
      if (m < packing_.heights.size() && packing_.heights[m] != heights[m])
        return bad_input("memory '{}': height is {}, the packing claims {}", memory.name,
                         heights[m].value, packing_.heights[m].value);
      if (packing_.fits() && memory.capacity && heights[m] > *memory.capacity)
        return bad_input("memory '{}': height {} is above its capacity {}", memory.name,
                         heights[m].value, memory.capacity->value);
    }
    return {};
  }

  tl::unexpected<Error> overlap(const Box& a, const Box& b) const {
    return bad_input("buffers '{}' and '{}' are alive together and overlap: [{}, {}) and [{}, {})",
                     problem_.name(BufferId(a.buffer)), problem_.name(BufferId(b.buffer)), a.lo,
                     a.hi, b.lo, b.hi);
  }

  Status check_ends(const Box& a, const Box& b) const {
    if (problem_.ends.empty()) return {};
    const ArenaEnd end_a = problem_.ends[a.buffer];
    const ArenaEnd end_b = problem_.ends[b.buffer];
    if (end_a == ArenaEnd::kFront && end_b == ArenaEnd::kBack && a.hi > b.lo)
      return wrong_side(a, b);
    if (end_b == ArenaEnd::kFront && end_a == ArenaEnd::kBack && b.hi > a.lo)
      return wrong_side(b, a);
    return {};
  }

  tl::unexpected<Error> wrong_side(const Box& front, const Box& back) const {
    return bad_input("front buffer '{}' at [{}, {}) is above back buffer '{}' at [{}, {})",
                     problem_.name(BufferId(front.buffer)), front.lo, front.hi,
                     problem_.name(BufferId(back.buffer)), back.lo, back.hi);
  }

  Status enter(Alive& alive, const Box& box) const {
    const std::size_t m = memory(box.buffer);
    const auto here = alive.boxes.insert({m, box.lo, box.hi, box.buffer}).first;
    const auto hits = [&](const auto& other) {
      const auto& [om, lo, hi, buffer] = other;
      return om == m && lo < box.hi && box.lo < hi && !same_class(buffer, box.buffer);
    };
    for (auto above = std::next(here); above != alive.boxes.end(); ++above) {
      if (hits(*above)) return overlap(box, this->box(std::get<3>(*above)));
      if (!same_class(std::get<3>(*above), box.buffer)) break;
    }
    for (auto below = here; below != alive.boxes.begin();) {
      --below;
      if (hits(*below)) return overlap(box, this->box(std::get<3>(*below)));
      if (!same_class(std::get<3>(*below), box.buffer)) break;
    }
    return enter_ends(alive, box);
  }

  Status enter_ends(Alive& alive, const Box& box) const {
    if (problem_.ends.empty() || problem_.ends[box.buffer] == ArenaEnd::kAny) return {};
    const std::size_t m = memory(box.buffer);
    const bool front = problem_.ends[box.buffer] == ArenaEnd::kFront;
    if (front) {
      alive.front_tops.insert({m, box.hi});
    } else {
      alive.back_bottoms.insert({m, box.lo});
    }
    const auto top = alive.front_tops.upper_bound({m, std::numeric_limits<std::int64_t>::max()});
    const auto bottom = alive.back_bottoms.lower_bound({m, 0});
    if (top == alive.front_tops.begin() || bottom == alive.back_bottoms.end()) return {};
    if (std::prev(top)->first != m || bottom->first != m) return {};
    if (std::prev(top)->second <= bottom->second) return {};
    return bad_input("{} buffer '{}' at [{}, {}) is on the wrong side: front reaches {}, back {}",
                     front ? "front" : "back", problem_.name(BufferId(box.buffer)), box.lo, box.hi,
                     std::prev(top)->second, bottom->second);
  }

  void leave(Alive& alive, const Box& box) const {
    const std::size_t m = memory(box.buffer);
    alive.boxes.erase({m, box.lo, box.hi, box.buffer});
    if (problem_.ends.empty()) return;
    const auto erase_one = [&](auto& set, std::int64_t key) {
      if (const auto at = set.find({m, key}); at != set.end()) set.erase(at);
    };
    if (problem_.ends[box.buffer] == ArenaEnd::kFront) erase_one(alive.front_tops, box.hi);
    if (problem_.ends[box.buffer] == ArenaEnd::kBack) erase_one(alive.back_bottoms, box.lo);
  }

  const Problem& problem_;
  const Packing& packing_;

 public:
  void number_classes() {
    class_.assign(problem_.size(), -1);
    for (std::size_t k = 0; k < problem_.colocated.size(); ++k) {
      for (const BufferId id : problem_.colocated[k]) class_[id.index()] = static_cast<int>(k);
    }
  }

 private:
  std::vector<int> class_;
};

}  // namespace

std::vector<Bytes> packed_heights(const Problem& problem, const Packing& packing) {
  return Checker(problem, packing).heights();
}

Status check_packing_slowly(const Problem& problem, const Packing& packing) {
  Checker checker(problem, packing);
  checker.number_classes();
  PLIMSOLL_RETURN_IF_ERROR(checker.check_places());
  return checker.check_every_pair();
}

Status check_packing(const Problem& problem, const Packing& packing) {
  const bool clocks = problem.clocks.streams > 0;
  const bool windows = std::any_of(problem.gaps.begin(), problem.gaps.end(),
                                   [](const Gap& gap) { return !gap.window.empty(); });
  if ((clocks && (!problem.colocated.empty() || !problem.ends.empty())) ||
      (windows && !problem.colocated.empty()))
    return check_packing_slowly(problem, packing);
  Checker checker(problem, packing);
  checker.number_classes();
  PLIMSOLL_RETURN_IF_ERROR(checker.check_places());
  return clocks ? checker.sweep_space() : checker.sweep_time();
}

}  // namespace plimsoll::pack
