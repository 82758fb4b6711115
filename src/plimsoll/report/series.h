// Bytes over time by group, at a level of detail that a page can hold.
//
// Up to `buckets` time steps each has its own entry and the series is exact. Above, a bucket covers
// several time steps and keeps the composition at the one where most bytes are alive: sums inside a
// bucket are consistent, and no peak is ever lost or flattened by averaging.
//
// Cost: linear in time steps and allocations, and one row of groups per bucket; memory is what is
// returned.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

inline constexpr std::int64_t kMostBuckets = 32768;

struct Series {
  std::int64_t time_steps_per_bucket = 1;
  std::int64_t buckets = 0;
  std::vector<std::vector<double>> bytes;  // [group][bucket]

  bool operator==(const Series&) const = default;
};

// `group` gives an allocation's group, below `groups`.
Series make_series(const Timeline& timeline, int memory, std::size_t groups,
                   const std::function<std::size_t(const Allocation&)>& group,
                   std::int64_t most_buckets = kMostBuckets);

}  // namespace plimsoll::report
