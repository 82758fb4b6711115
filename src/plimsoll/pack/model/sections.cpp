#include "plimsoll/pack/model/sections.h"

#include <algorithm>
#include <numeric>

namespace plimsoll::pack {
namespace {

using Times = std::span<const Interval<std::int64_t>>;
using Member = std::int64_t Interval<std::int64_t>::*;

// Indices of the intervals by ascending begin (or end).
std::vector<std::uint32_t> order_by(Times times, Member member, std::int64_t low,
                                    std::int64_t high) {
  std::vector<std::uint32_t> order(times.size());
  const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  if (range <= 8 * times.size() + 1024) {
    std::vector<std::uint32_t> slots(range + 2, 0);
    for (const auto& time : times) ++slots[static_cast<std::size_t>(time.*member - low) + 1];
    std::partial_sum(slots.begin(), slots.end(), slots.begin());
    for (std::size_t i = 0; i < times.size(); ++i)
      order[slots[static_cast<std::size_t>(times[i].*member - low)]++] =
          static_cast<std::uint32_t>(i);
    return order;
  }
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(times[a].*member, a) < std::pair(times[b].*member, b);
  });
  return order;
}

}  // namespace

Sections cut_sections(Times times) {
  Sections out;
  out.spans.resize(times.size());
  if (times.empty()) return out;
  std::int64_t low = times.front().begin;
  std::int64_t high = times.front().end;
  for (const auto& time : times) {
    low = std::min(low, time.begin);
    high = std::max(high, time.end);
  }
  const auto births = order_by(times, &Interval<std::int64_t>::begin, low, high);
  const auto deaths = order_by(times, &Interval<std::int64_t>::end, low, high);
  bool grew = false;
  std::size_t next = 0;
  for (const std::uint32_t dead : deaths) {
    for (; next < births.size() && times[births[next]].begin < times[dead].end; ++next) {
      out.spans[births[next]].begin = out.count;
      grew = true;
    }
    if (grew) ++out.count;
    grew = false;
    out.spans[dead].end = out.count;
  }
  return out;
}

std::vector<Interval<std::int64_t>> conservative_lifetimes(const Clocks& clocks) {
  const auto streams = static_cast<std::size_t>(clocks.streams);
  const std::size_t n = clocks.ready.size() / streams;
  std::vector<__int128> sums(n, 0);
  for (std::size_t k = 0; k < clocks.ready.size(); ++k) sums[k / streams] += clocks.ready[k];
  std::vector<std::uint32_t> line(n);
  std::iota(line.begin(), line.end(), 0u);
  std::stable_sort(line.begin(), line.end(), [&](auto a, auto b) { return sums[a] < sums[b]; });

  std::vector<Interval<std::int64_t>> times(n);
  for (std::size_t p = 0; p < n; ++p) {
    times[line[p]] = {static_cast<std::int64_t>(p), static_cast<std::int64_t>(p) + 1};
  }
  std::vector<std::int64_t> least(n);  // of `ready` from here on: ascending
  for (std::size_t s = 0; s < streams; ++s) {
    for (std::size_t p = n; p-- > 0;) {
      const std::int64_t ready = clocks.ready[line[p] * streams + s];
      least[p] = p + 1 < n ? std::min(ready, least[p + 1]) : ready;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const auto free_from =
          std::lower_bound(least.begin(), least.end(), clocks.released[i * streams + s]);
      times[i].end = std::max<std::int64_t>(times[i].end, free_from - least.begin());
    }
  }
  return times;
}

}  // namespace plimsoll::pack
