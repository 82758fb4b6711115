#include "plimsoll/schedule/bounds.h"

#include <algorithm>
#include <limits>

#include "plimsoll/schedule/fit.h"

namespace plimsoll::schedule {
namespace {

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

// Removing a value: bytes and the least seconds that bringing it back costs.
struct Item {
  Index value;
  std::int64_t bytes;
  double seconds;
};

// One task pays once for all of its outputs, so each output is charged its share by bytes.
std::vector<Item> items_by_price(const Problem& p) {
  std::vector<std::int64_t> made(at(p.tasks), 0);
  for (Index v = 0; v < p.values; ++v) {
    if (p.producer[at(v)] != kNoIndex) made[at(p.producer[at(v)])] += p.bytes[at(v)];
  }
  std::vector<Item> items;
  for (Index v = 0; v < p.values; ++v) {
    const auto i = at(v);
    const std::int64_t bytes = p.bytes[i];
    if (bytes == 0) continue;
    double per_byte = std::numeric_limits<double>::infinity();
    if (p.remakeable(v)) {
      const Index task = p.producer[i];
      per_byte = p.seconds[at(task)] / static_cast<double>(made[at(task)]);
    }
    if (p.encoding[i] != kNoIndex) {
      per_byte = std::min(per_byte, (p.encode_seconds[i] + p.decode_seconds[i]) /
                                        static_cast<double>(bytes - p.encoded_bytes[i]));
    }
    if (p.swappable[i]) per_byte = 0;
    if (per_byte < std::numeric_limits<double>::infinity()) {
      items.push_back({v, bytes, per_byte * static_cast<double>(bytes)});
    }
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return a.seconds * static_cast<double>(b.bytes) < b.seconds * static_cast<double>(a.bytes);
  });
  return items;
}

}  // namespace

double knapsack_bound(const Problem& p, const Sequence& q, std::int64_t budget, int stages) {
  if (p.tasks == 0) return 0;
  const std::vector<Item> items = items_by_price(p);
  std::vector<Index> made(at(p.values)), last(at(p.values));
  for (Index v = 0; v < p.values; ++v) {
    made[at(v)] = p.producer[at(v)] == kNoIndex ? -1 : q.position[at(p.producer[at(v)])];
    const auto readers = q.readers[v];
    last[at(v)] = p.keep[at(v)] ? p.tasks : (readers.empty() ? made[at(v)] : readers.back());
  }
  double bound = 0;
  const Index step = std::max<Index>(1, p.tasks / std::max(1, stages));
  for (Index t = 0; t < p.tasks; t += step) {
    const Index task = q.order[at(t)];
    std::int64_t over = p.scratch[at(task)] - budget;
    for (Index v = 0; v < p.values; ++v) {
      if (made[at(v)] <= t && last[at(v)] >= t) over += p.bytes[at(v)];
    }
    for (Index v : p.outputs[task]) {
      if (p.in_place[at(v)] != kNoIndex) over -= p.bytes[at(v)];
      if (last[at(v)] < t) over += p.bytes[at(v)];
    }
    if (over <= 0) continue;
    const auto inputs = p.inputs[task];
    double seconds = 0;
    for (const Item& item : items) {
      if (over <= 0) break;
      const auto i = at(item.value);
      if (made[i] >= t || last[i] <= t) continue;
      if (std::find(inputs.begin(), inputs.end(), item.value) != inputs.end()) continue;
      const double share =
          std::min(1.0, static_cast<double>(over) / static_cast<double>(item.bytes));
      seconds += share * item.seconds;
      over -= item.bytes;
    }
    bound = std::max(bound, seconds);
  }
  return bound;
}

Floor floor_of(const Workload& workload, const Remedies& remedies) {
  const Problem p(workload, remedies, CopyRates{});
  const auto removable = [&](Index v) {
    return p.remakeable(v) || p.swappable[at(v)] || p.encoding[at(v)] != kNoIndex;
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
  Floor floor;
  const auto consider = [&](TaskId id, std::int64_t bytes, std::vector<ValueId> wall) {
    if (bytes <= floor.bytes.value && !floor.wall.empty()) return;
    std::sort(wall.begin(), wall.end(), [&](ValueId a, ValueId b) {
      const Bytes size_a = workload.value(a).bytes, size_b = workload.value(b).bytes;
      return size_a != size_b ? size_a > size_b : a < b;
    });
    floor = {Bytes(bytes), id, std::move(wall)};
  };
  for (Index t = 0; t < p.tasks; ++t) {
    std::int64_t bytes = fixed + p.scratch[at(t)];
    std::vector<ValueId> wall;
    for (Index u : p.inputs[t]) {
      if (!pinned[at(u)]) bytes += p.bytes[at(u)];
      wall.push_back(ValueId(at(u)));
    }
    for (Index v : p.outputs[t]) {
      const bool in_place = p.in_place[at(v)] != kNoIndex;
      // A new version of a pinned source lies in its old one and stays; it counts once.
      if (!in_place) bytes += p.bytes[at(v)];
      wall.push_back(ValueId(at(v)));
    }
    consider(TaskId(at(t)), bytes, std::move(wall));
  }
  std::int64_t at_end = 0;
  std::vector<ValueId> kept;
  for (Index v = 0; v < p.values; ++v) {
    Index root = v;
    while (p.producer[at(root)] != kNoIndex && p.must_take[at(root)]) root = p.in_place[at(root)];
    const bool may_be_away = p.producer[at(root)] == kNoIndex && p.swappable[at(root)];
    if (!p.keep[at(v)] || may_be_away) continue;
    at_end += p.bytes[at(v)];
    kept.push_back(ValueId(at(v)));
  }
  consider(TaskId(), at_end, std::move(kept));
  return floor;
}

}  // namespace plimsoll::schedule
