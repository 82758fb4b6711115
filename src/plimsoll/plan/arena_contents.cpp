#include "plimsoll/plan/arena_contents.h"

namespace plimsoll::plan {

void ArenaContents::cut(Segments& arena, std::int64_t at) {
  auto place = arena.upper_bound(at);
  if (place == arena.begin() || (--place)->first == at || place->second.end <= at) return;
  Segment tail = place->second;
  tail.from += at - place->first;
  place->second.end = at;
  arena.emplace(at, tail);
}

void ArenaContents::store(const Range& range, ValueId value, std::string_view codec,
                          std::int32_t writer) {
  if (range.empty()) return;
  auto& arena = arenas_[static_cast<std::size_t>(range.arena)];
  cut(arena, range.begin);
  cut(arena, range.end);
  arena.erase(arena.lower_bound(range.begin), arena.lower_bound(range.end));
  arena.emplace(range.begin, Segment{range.end, value, 0, codec, writer});
}

bool ArenaContents::holds(const Range& range, const std::vector<ViewPiece>& content, bool encoded) {
  std::int64_t at = range.begin;
  bool right = true;
  for (const ViewPiece& piece : content) {
    const std::int64_t first = range.begin + piece.begin;
    for_segments(
        {range.arena, first, first + piece.bytes}, [&](std::int64_t begin, const Segment& segment) {
          right = right && begin == at && segment.value == piece.value &&
                  segment.from == piece.from + begin - first && segment.codec.empty() != encoded;
          at = segment.end;
        });
  }
  return right && at == range.end;
}

}  // namespace plimsoll::plan
