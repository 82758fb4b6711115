#include "plimsoll/runtime/paging/access_order.h"

#include <algorithm>
#include <iterator>

namespace plimsoll::runtime {

void AccessOrder::join(Numbers& into, const Numbers& more) {
  for (std::size_t s = 0; s < kStreams; ++s) into[s] = std::max(into[s], more[s]);
}

AccessOrder::Segments::const_iterator AccessOrder::first_in(Range range) const {
  auto at = segments_.upper_bound(range.begin);
  if (at != segments_.begin() && std::prev(at)->second.end > range.begin) --at;
  return at;
}

AccessOrder::Numbers AccessOrder::before_read(Range range) const {
  Numbers out{};
  for (auto at = first_in(range); at != segments_.end() && at->first < range.end; ++at)
    join(out, at->second.writes);
  return out;
}

AccessOrder::Numbers AccessOrder::before_write(Range range) const {
  Numbers out{};
  for (auto at = first_in(range); at != segments_.end() && at->first < range.end; ++at) {
    join(out, at->second.writes);
    join(out, at->second.reads);
  }
  return out;
}

void AccessOrder::split(std::int64_t at) {
  const auto behind = segments_.upper_bound(at);
  if (behind == segments_.begin()) return;
  const auto over = std::prev(behind);
  if (over->first == at || over->second.end <= at) return;
  segments_.emplace_hint(behind, at, over->second);
  over->second.end = at;
}

void AccessOrder::read(Range range, std::size_t stream, std::int64_t number) {
  if (range.empty()) return;
  split(range.begin);
  split(range.end);
  std::int64_t covered = range.begin;
  auto at = segments_.lower_bound(range.begin);
  const auto fresh = [&](std::int64_t begin, std::int64_t end) {
    Segment segment;
    segment.end = end;
    segment.reads[stream] = number;
    segments_.emplace_hint(at, begin, segment);
  };
  for (; at != segments_.end() && at->first < range.end; ++at) {
    if (covered < at->first) fresh(covered, at->first);
    at->second.reads[stream] = number;
    covered = at->second.end;
  }
  if (covered < range.end) fresh(covered, range.end);
}

void AccessOrder::write(Range range, std::size_t stream, std::int64_t number) {
  if (range.empty()) return;
  split(range.begin);
  split(range.end);
  segments_.erase(segments_.lower_bound(range.begin), segments_.lower_bound(range.end));
  Segment segment;
  segment.end = range.end;
  segment.writes[stream] = number;
  segments_.emplace(range.begin, segment);
}

}  // namespace plimsoll::runtime
