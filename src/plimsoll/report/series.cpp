#include "plimsoll/report/series.h"

#include <algorithm>

namespace plimsoll::report {
namespace {

struct Change {
  std::int32_t time_step;
  std::uint32_t group;
  std::int64_t bytes;
};

std::vector<Change> changes_of(const Timeline& timeline, int memory,
                               const std::function<std::size_t(const Allocation&)>& group) {
  std::vector<Change> out;
  for (const Allocation& allocation : timeline.allocations) {
    if (allocation.memory != memory) continue;
    const auto g = static_cast<std::uint32_t>(group(allocation));
    out.push_back({allocation.life.begin.value, g, allocation.bytes.value});
    out.push_back({allocation.life.end.value, g, -allocation.bytes.value});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Change& a, const Change& b) { return a.time_step < b.time_step; });
  return out;
}

}  // namespace

Series make_series(const Timeline& timeline, int memory, std::size_t groups,
                   const std::function<std::size_t(const Allocation&)>& group,
                   std::int64_t most_buckets) {
  const std::int64_t time_steps = std::max<std::int64_t>(timeline.time_steps(), 1);
  Series out;
  out.time_steps_per_bucket = (time_steps + most_buckets - 1) / most_buckets;
  out.buckets = (time_steps + out.time_steps_per_bucket - 1) / out.time_steps_per_bucket;
  out.bytes.assign(groups, std::vector<double>(static_cast<std::size_t>(out.buckets)));
  const std::vector<Change> changes = changes_of(timeline, memory, group);
  std::vector<std::int64_t> alive(groups);
  std::int64_t sum = 0;
  std::size_t next = 0;
  for (std::int64_t bucket = 0; bucket < out.buckets; ++bucket) {
    const std::int64_t end = std::min((bucket + 1) * out.time_steps_per_bucket, time_steps);
    std::int64_t most = -1;
    for (std::int64_t time_step = bucket * out.time_steps_per_bucket; time_step < end;
         ++time_step) {
      for (; next < changes.size() && changes[next].time_step <= time_step; ++next) {
        alive[changes[next].group] += changes[next].bytes;
        sum += changes[next].bytes;
      }
      if (sum <= most) continue;
      most = sum;
      for (std::size_t g = 0; g < groups; ++g) {
        out.bytes[g][static_cast<std::size_t>(bucket)] = static_cast<double>(alive[g]);
      }
    }
  }
  return out;
}

}  // namespace plimsoll::report
