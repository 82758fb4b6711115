// What lies in the arenas while a plan is replayed: for each byte, which value's which byte it is,
// who wrote it, and who read it last on every stream. For the verifier of plans (check_plan.h).
//
//   arena 0   [0, 4096)   bytes 0.. of h, written by step 0     [4096, 8192)   bytes 512.. of w
//
// Runs of bytes are kept in a map by where they begin, and cut where a range begins or ends inside
// one. Cost: the logarithm of the runs, and those that a range covers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "plimsoll/plan/check_structure.h"
#include "plimsoll/plan/check_views.h"

namespace plimsoll::plan {

inline constexpr std::int32_t kBeforeStart = -1;
using StreamClock =
    std::array<std::int32_t, kFollowedStreams>;  // by stream: a step, or kBeforeStart
inline constexpr StreamClock kNoSteps = [] {
  StreamClock out{};
  for (std::int32_t& step : out) step = kBeforeStart;
  return out;
}();

// A run of bytes in an arena: those of `value` from `from` on; without a value, rubbish.
struct Segment {
  std::int64_t end = 0;
  ValueId value;
  std::int64_t from = 0;
  std::string_view codec;  // in the compact form that it made; empty: as they are
  std::int32_t writer = kBeforeStart;
  StreamClock readers = kNoSteps;  // the last on each stream
};

struct Range {
  int arena = 0;
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  bool overlaps(const Range& other) const {
    return arena == other.arena && std::max(begin, other.begin) < std::min(end, other.end);
  }
  bool operator==(const Range&) const = default;
};

class ArenaContents {
 public:
  explicit ArenaContents(std::size_t arenas) : arenas_(arenas) {}

  // body(where it begins, segment) for every run of bytes in the range.
  template <typename Body>
  void for_segments(const Range& range, Body body) {
    if (range.empty()) return;
    auto& arena = arenas_[static_cast<std::size_t>(range.arena)];
    cut(arena, range.begin);
    cut(arena, range.end);
    for (auto place = arena.lower_bound(range.begin);
         place != arena.end() && place->first < range.end; ++place)
      body(place->first, place->second);
  }

  // From here on the range holds `value`, in the form that the codec made if one is named.
  void store(const Range& range, ValueId value, std::string_view codec, std::int32_t writer);

  // Does the range hold exactly these bytes, one after the other?
  bool holds(const Range& range, const std::vector<ViewPiece>& content, bool encoded = false);

 private:
  using Segments = std::map<std::int64_t, Segment>;
  // So that no segment crosses `at`.
  static void cut(Segments& arena, std::int64_t at);

  std::vector<Segments> arenas_;
};

}  // namespace plimsoll::plan
