#include "plimsoll/schedule/bounds/memory_bound.h"

#include <algorithm>

#include "plimsoll/schedule/search/problem.h"

namespace plimsoll::schedule {

MemoryBound memory_bound(const Workload& workload, const Remedies& remedies) {
  const Problem p(workload, remedies, CopyRates{});
  const auto removable = [&](Index v) {
    return p.recomputable(v) || p.swappable[at(v)] || p.encoding[at(v)] != kNoIndex;
  };
  // The source that it is a new version of, however many updates lie between; else itself.
  const auto root_of = [&](Index v) {
    while (p.producer[at(v)] != kNoIndex && p.must_take[at(v)]) v = p.in_place[at(v)];
    return v;
  };
  // Bytes that nothing can remove, by position. Without recompute, swap or encode a value stays
  // from its making to its last reader; but the order may change, so only sources and kept values
  // that last to the end are certain: a source read by nobody yet, or kept, is there.
  std::int64_t fixed = 0;
  std::vector<char> pinned(at(p.values), 0);
  for (Index v = 0; v < p.values; ++v) {
    const bool kept_source =
        p.producer[at(v)] == kNoIndex && (p.keep[at(v)] || p.overwriter[at(v)] != kNoIndex);
    if (kept_source && !removable(v)) {
      pinned[at(v)] = 1;
      fixed += p.bytes[at(v)];
    }
  }
  MemoryBound bound;
  const auto consider = [&](TaskId id, std::int64_t bytes, std::vector<ValueId> limiting) {
    if (bytes <= bound.bytes.value && !bound.limiting.empty()) return;
    std::sort(limiting.begin(), limiting.end(), [&](ValueId a, ValueId b) {
      const Bytes size_a = workload.value(a).bytes, size_b = workload.value(b).bytes;
      return size_a != size_b ? size_a > size_b : a < b;
    });
    bound = {Bytes(bytes), id, std::move(limiting)};
  };
  for (Index t = 0; t < p.tasks; ++t) {
    std::int64_t bytes = fixed + p.scratch[at(t)];
    std::vector<ValueId> limiting;
    for (Index u : p.inputs[t]) {
      if (!pinned[at(root_of(u))]) bytes += p.bytes[at(u)];
      limiting.push_back(ValueId(at(u)));
    }
    for (Index v : p.outputs[t]) {
      const bool in_place = p.in_place[at(v)] != kNoIndex;
      // What lies over an input counts once; so does a new version of a pinned source.
      if (in_place) continue;
      bytes += p.bytes[at(v)];
      limiting.push_back(ValueId(at(v)));
    }
    consider(TaskId(at(t)), bytes, std::move(limiting));
  }
  std::int64_t at_end = 0;
  std::vector<ValueId> kept;
  for (Index v = 0; v < p.values; ++v) {
    const Index root = root_of(v);
    const bool may_be_away = p.producer[at(root)] == kNoIndex && p.swappable[at(root)];
    if (!p.keep[at(v)] || may_be_away) continue;
    at_end += p.bytes[at(v)];
    kept.push_back(ValueId(at(v)));
  }
  consider(TaskId(), at_end, std::move(kept));
  return bound;
}

}  // namespace plimsoll::schedule
