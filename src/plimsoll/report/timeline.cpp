#include "plimsoll/report/timeline.h"

#include <algorithm>

#include "plimsoll/base/check.h"

namespace plimsoll::report {

std::string_view name(Kind kind) {
  static constexpr std::array<std::string_view, kKindCount> kNames = {"outside the allocator",
                                                                      "allocated before recording",
                                                                      "weights",
                                                                      "optimizer",
                                                                      "gradients",
                                                                      "activations",
                                                                      "temporaries",
                                                                      "inputs",
                                                                      "outputs",
                                                                      "staging",
                                                                      "unlabelled"};
  return kNames[static_cast<std::size_t>(kind)];
}

TextId TextTable::intern(std::string_view text) {
  std::string key(text.substr(0, kLongestText));
  if (const auto found = ids_.find(key); found != ids_.end()) return found->second;
  if (bytes_ + key.size() > kMostTextBytes) {
    full_ = true;
    key = "(name not kept)";
    if (const auto found = ids_.find(key); found != ids_.end()) return found->second;
  }
  bytes_ += key.size();
  const TextId id(texts_.size());
  texts_.push_back(key);
  ids_.emplace(std::move(key), id);
  return id;
}

std::vector<Bytes> bytes_by_time_step(const Timeline& timeline, int memory) {
  std::vector<Bytes> alive(timeline.seconds.empty() ? 1 : timeline.seconds.size());
  for (const Allocation& allocation : timeline.allocations) {
    if (allocation.memory != memory) continue;
    PLIMSOLL_CHECK(allocation.life.begin.value >= 0 &&
                       static_cast<std::size_t>(allocation.life.end.value) < alive.size(),
                   "an allocation is alive in time steps [{}, {}) of {}",
                   allocation.life.begin.value, allocation.life.end.value, timeline.time_steps());
    alive[static_cast<std::size_t>(allocation.life.begin.value)] += allocation.bytes;
    alive[static_cast<std::size_t>(allocation.life.end.value)] -= allocation.bytes;
  }
  Bytes sum;
  for (Bytes& time_step : alive) time_step = sum += time_step;
  alive.resize(std::max<std::size_t>(1, alive.size() - 1));
  return alive;
}

Peak peak_of(const Timeline& timeline, int memory) {
  const std::vector<Bytes> alive = bytes_by_time_step(timeline, memory);
  const auto most = std::max_element(alive.begin(), alive.end());
  return {Step(most - alive.begin()), *most};
}

Bytes total_of(const Timeline& timeline) {
  return timeline.arena.value > 0 ? timeline.arena : peak_of(timeline).bytes;
}

std::array<Bytes, kKindCount> bytes_by_kind_at(const Timeline& timeline, Step time_step,
                                               int memory) {
  std::array<Bytes, kKindCount> out{};
  for (const Allocation& allocation : timeline.allocations) {
    if (allocation.memory == memory && allocation.life.contains(time_step)) {
      out[static_cast<std::size_t>(allocation.kind)] += allocation.bytes;
    }
  }
  return out;
}

void sort_allocations(Timeline& timeline) {
  std::stable_sort(timeline.allocations.begin(), timeline.allocations.end(),
                   [](const Allocation& a, const Allocation& b) {
                     if (a.life.begin != b.life.begin) return a.life.begin < b.life.begin;
                     return a.bytes > b.bytes;
                   });
}

namespace {

// Used stretches of one memory, ascending and apart, each with the place its first byte gets.
struct Stretch {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t place = 0;
};

std::vector<Stretch> used_stretches(std::vector<Stretch> used) {
  std::sort(used.begin(), used.end(),
            [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  std::vector<Stretch> out;
  for (const Stretch& next : used) {
    if (!out.empty() && next.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, next.end);
    } else {
      out.push_back(next);
    }
  }
  return out;
}

}  // namespace

void compact_places(Timeline& timeline) {
  constexpr std::int64_t kSeam = 512;
  for (std::size_t memory = 0; memory < timeline.memories.size(); ++memory) {
    std::vector<Stretch> used;
    for (const Allocation& allocation : timeline.allocations) {
      if (allocation.memory == memory)
        used.push_back({allocation.place.value, (allocation.place + allocation.bytes).value, 0});
    }
    std::vector<Stretch> stretches = used_stretches(std::move(used));
    std::int64_t next = 0;
    for (Stretch& stretch : stretches) {
      stretch.place = next;
      next += stretch.end - stretch.begin + kSeam;
    }
    for (Allocation& allocation : timeline.allocations) {
      if (allocation.memory != memory) continue;
      const auto after =
          std::upper_bound(stretches.begin(), stretches.end(), allocation.place.value,
                           [](std::int64_t place, const Stretch& s) { return place < s.begin; });
      const Stretch& home = *std::prev(after);
      allocation.place = Offset(home.place + allocation.place.value - home.begin);
    }
  }
}

std::string_view layer_of_name(std::string_view name) {
  if (const auto slash = name.find('/'); slash != std::string_view::npos)
    return name.substr(0, slash);
  const auto dot = name.find_last_of('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string_view layer_of_source(std::string_view name, Kind kind) {
  const std::string_view owner = layer_of_name(name);
  return kind == Kind::kOptimizer ? layer_of_name(owner) : owner;
}

}  // namespace plimsoll::report
