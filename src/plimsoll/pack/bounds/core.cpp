#include "plimsoll/pack/bounds/core.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/pack/bounds/bounds.h"
#include "plimsoll/pack/exact/ordering_search.h"
#include "plimsoll/pack/exact/point_cover.h"

namespace plimsoll::pack {
namespace {

constexpr std::int64_t kNodesPerQuestion = 20'000;
constexpr std::size_t kMostBodies = 400;
constexpr double kSecondsPerQuestion = 0.2;

bool refuted(const BodyModel& model, std::int64_t capacity, Budget& budget) {
  if (lower_bound(model).bytes > capacity) return true;
  Budget part = budget.share(1.0);
  CoverResult result = CoverResult::kLimit;
  if (model.plain) {
    std::vector<std::uint32_t> all(model.bodies.size());
    std::iota(all.begin(), all.end(), 0u);
    PointCover search(make_cover_task(model, all, {0, model.sections}, capacity), {});
    result = search.run(part, kNodesPerQuestion);
  } else if (model.bodies.size() <= kOrderingSearchBodies) {
    std::vector<std::int64_t> places;
    Budget question(kSecondsPerQuestion, true);
    result = search_orderings(model, capacity, question, places);
  }
  budget.settle(part);
  return result == CoverResult::kImpossible;
}

}  // namespace

BodyModel subset(const BodyModel& model, std::span<const std::uint32_t> bodies) {
  BodyModel out;
  out.problem = model.problem;
  out.sections = model.sections;
  out.unit = model.unit;
  out.slab = model.slab;
  out.plain = model.plain;
  for (const std::uint32_t b : bodies) {
    Body body = model.bodies[b];
    const auto pieces = model.pieces_of(b);
    body.piece_begin = static_cast<std::uint32_t>(out.pieces.size());
    out.pieces.insert(out.pieces.end(), pieces.begin(), pieces.end());
    body.piece_end = static_cast<std::uint32_t>(out.pieces.size());
    out.has_fixed = out.has_fixed || body.fixed >= 0;
    out.bodies.push_back(body);
  }
  return out;
}

std::vector<BufferId> shrink_core(const BodyModel& model, std::span<const BufferId> witnesses,
                                  std::int64_t capacity, Budget& budget) {
  std::vector<std::uint32_t> core;
  for (const BufferId id : witnesses) core.push_back(model.body_of[id.index()]);
  std::sort(core.begin(), core.end());
  core.erase(std::unique(core.begin(), core.end()), core.end());
  // The large ones explain most: try to drop the small ones first.
  std::stable_sort(core.begin(), core.end(),
                   [&](auto a, auto b) { return model.bodies[a].height < model.bodies[b].height; });
  for (std::size_t k = 0; k < core.size() && core.size() <= kMostBodies && !budget.over();) {
    std::vector<std::uint32_t> rest = core;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
    if (!rest.empty() && refuted(subset(model, rest), capacity, budget)) {
      core = std::move(rest);
    } else {
      ++k;
    }
  }
  std::vector<BufferId> out;
  for (std::size_t i = 0; i < model.body_of.size(); ++i) {
    if (std::find(core.begin(), core.end(), model.body_of[i]) != core.end())
      out.push_back(BufferId(i));
  }
  return out;
}

}  // namespace plimsoll::pack
