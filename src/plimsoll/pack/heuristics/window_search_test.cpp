#include "plimsoll/pack/heuristics/window_search.h"
#include "plimsoll/pack/heuristics/order.h"

#include <gtest/gtest.h>

#include "plimsoll/pack/bounds/bounds.h"
#include "plimsoll/pack/check/check_packing.h"
#include "plimsoll/pack/model/generate.h"
#include "plimsoll/pack/model/make_bodies.h"

namespace plimsoll::pack {
namespace {

Packing packing_of(const BodyModel& model, const std::vector<std::int64_t>& places) {
  Packing packing;
  packing.offsets.resize(model.problem->size());
  write_offsets(model, places, packing.offsets);
  packing.heights = {Bytes(height_of(model, places))};
  packing.status = PackStatus::kFeasible;
  return packing;
}

TEST(WindowSearch, LowersAPassThatEndsHighAndStaysValid) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    Problem problem = generate(Family::kRandom, 60'000, seed);
    for (Buffer& buffer : problem.buffers)  // short lives, so that windows are a part of the whole
      buffer.lifetime.end =
          buffer.lifetime.begin + (buffer.lifetime.end - buffer.lifetime.begin) / 16 + 1;
    const BodyModel model = make_bodies(problem, 0, {});
    Skyline skyline(model);
    std::vector<std::int64_t> places;
    skyline.pass(priorities(model, Order::kSize), {false, false, false}, places);
    const std::int64_t before = height_of(model, places);
    Budget budget(0.5, true);
    const std::int64_t bound = lower_bound(model).bytes;
    EXPECT_TRUE(search_windows(model, {.target = bound, .rules = {}, .seed = seed}, budget, places))
        << "seed " << seed;
    EXPECT_LT(height_of(model, places), before) << "seed " << seed;
    const Status checked = check_packing(problem, packing_of(model, places));
    EXPECT_TRUE(checked) << checked.error().message << ", seed " << seed;
  }
}

TEST(WindowSearch, LeavesAPackingAtItsTargetAlone) {
  const Problem problem = generate(Family::kRandom, 5000, 4);
  const BodyModel model = make_bodies(problem, 0, {});
  Skyline skyline(model);
  std::vector<std::int64_t> places;
  skyline.pass(priorities(model, Order::kArea), {}, places);
  const std::vector<std::int64_t> before = places;
  Budget budget(1, true);
  EXPECT_FALSE(search_windows(model, {.target = height_of(model, places)}, budget, places));
  EXPECT_EQ(places, before);
}

TEST(WindowSearch, HasNothingToImproveWithoutAPacking) {
  const BodyModel model;
  std::vector<std::int64_t> places;
  Budget budget(1, true);
  EXPECT_FALSE(search_windows(model, {}, budget, places));
}

}  // namespace
}  // namespace plimsoll::pack
