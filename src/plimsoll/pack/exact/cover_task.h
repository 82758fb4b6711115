// The question that the exact search answers: do these items fit below these ceilings?
//
// Items are the plain bodies of a part, in sections numbered from 0; heights are in units of the
// model. Floors and ceilings are per section, so that a part of a packing can be asked about as
// well as all of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

struct CoverItem {
  std::int32_t first = 0;  // sections [first, last) of the task
  std::int32_t last = 0;
  std::int64_t size = 0;
  std::int64_t highest = 0;  // place above which it must not lie
  std::int64_t fixed = -1;
  std::int64_t hint = -1;
  double duration = 0;
  std::uint32_t body = 0;
};

struct CoverTask {
  const BodyModel* model = nullptr;  // for lift()
  std::int32_t sections = 0;
  std::vector<CoverItem> items;        // by their first section
  std::vector<std::int64_t> floors;    // one per section
  std::vector<std::int64_t> ceilings;  // one per section
};

// The task of packing the bodies in sections [first, last) of a plain model within `capacity`
// bytes.
CoverTask make_cover_task(const BodyModel& model, std::span<const std::uint32_t> bodies,
                          Interval<std::int32_t> sections, std::int64_t capacity);

}  // namespace plimsoll::pack
