#include "plimsoll/report/series.h"

#include <algorithm>

namespace plimsoll::report {
namespace {

struct Change {
  std::int32_t tick;
  std::uint32_t group;
  std::int64_t bytes;
};

std::vector<Change> changes_of(const Account& account, int memory,
                               const std::function<std::size_t(const Band&)>& group) {
  std::vector<Change> out;
  for (const Band& band : account.bands) {
    if (band.memory != memory) continue;
    const auto g = static_cast<std::uint32_t>(group(band));
    out.push_back({band.life.begin.value, g, band.bytes.value});
    out.push_back({band.life.end.value, g, -band.bytes.value});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Change& a, const Change& b) { return a.tick < b.tick; });
  return out;
}

}  // namespace

Series make_series(const Account& account, int memory, std::size_t groups,
                   const std::function<std::size_t(const Band&)>& group,
                   std::int64_t most_buckets) {
  const std::int64_t ticks = std::max<std::int64_t>(account.ticks(), 1);
  Series out;
  out.ticks_per_bucket = (ticks + most_buckets - 1) / most_buckets;
  out.buckets = (ticks + out.ticks_per_bucket - 1) / out.ticks_per_bucket;
  out.bytes.assign(groups, std::vector<double>(static_cast<std::size_t>(out.buckets)));
  const std::vector<Change> changes = changes_of(account, memory, group);
  std::vector<std::int64_t> alive(groups);
  std::int64_t sum = 0;
  std::size_t next = 0;
  for (std::int64_t bucket = 0; bucket < out.buckets; ++bucket) {
    const std::int64_t end = std::min((bucket + 1) * out.ticks_per_bucket, ticks);
    std::int64_t most = -1;
    for (std::int64_t tick = bucket * out.ticks_per_bucket; tick < end; ++tick) {
      for (; next < changes.size() && changes[next].tick <= tick; ++next) {
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
