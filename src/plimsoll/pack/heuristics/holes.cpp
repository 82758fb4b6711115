#include "plimsoll/pack/heuristics/holes.h"

#include <algorithm>

namespace plimsoll::pack {

void fill_holes(const BodyModel& model, std::vector<Hole> holes, ItemIndex& items,
                std::vector<std::int64_t>& places) {
  std::stable_sort(holes.begin(), holes.end(), [](const Hole& a, const Hole& b) {
    return a.sections.end - a.sections.begin > b.sections.end - b.sections.begin;
  });
  while (!holes.empty()) {
    const auto [sections, room] = holes.back();
    holes.pop_back();
    if (sections.empty() || room.empty()) continue;
    const std::int32_t item = items.best({.within = sections, .highest = room.end - room.begin});
    if (item < 0) continue;
    const std::uint32_t b = items.body(item);
    const Body& body = model.bodies[b];
    const std::int64_t place = model.lift(b, room.begin);
    if (place + body.height > room.end) continue;
    items.remove(item);
    places[b] = place;
    const std::int64_t top = place + body.height;
    holes.push_back({sections, {top, room.end}});
    holes.push_back({{sections.begin, body.first}, {room.begin, top}});
    holes.push_back({{body.last, sections.end}, {room.begin, top}});
  }
}

}  // namespace plimsoll::pack
