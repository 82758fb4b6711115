#include "plimsoll/pack/exact/cover_task.h"

#include <algorithm>

namespace plimsoll::pack {

CoverTask make_cover_task(const BodyModel& model, std::span<const std::uint32_t> bodies,
                          Interval<std::int32_t> sections, std::int64_t capacity) {
  CoverTask task;
  task.model = &model;
  task.sections = sections.end - sections.begin;
  const auto count = static_cast<std::size_t>(task.sections);
  task.floors.assign(count, 0);
  task.ceilings.assign(count, capacity / model.unit + (capacity % model.unit != 0));
  for (const std::uint32_t b : bodies) {
    const Body& body = model.bodies[b];
    task.items.push_back({body.first - sections.begin, body.last - sections.begin, body.height,
                          model.ceiling(b, capacity), body.fixed, body.hint, body.duration, b});
  }
  std::stable_sort(task.items.begin(), task.items.end(),
                   [](const CoverItem& a, const CoverItem& b) { return a.first < b.first; });
  return task;
}

}  // namespace plimsoll::pack
