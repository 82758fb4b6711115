#include "plimsoll/pack/heuristics/peak_stack.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/bounds/bounds.h"
#include "plimsoll/pack/check/check_packing.h"
#include "plimsoll/pack/heuristics/order.h"
#include "plimsoll/pack/model/make_bodies.h"

namespace plimsoll::pack {
namespace {

// A forward and a backward half with activations from one to the other, and a loss between them
// that is larger than anything else: one moment at which most bytes are alive.
Problem training_with_loss(std::int64_t layers, std::uint64_t seed) {
  Random random(seed);
  Problem out;
  const auto add = [&](std::int64_t begin, std::int64_t end, std::int64_t size) {
    out.buffers.push_back({.lifetime = {begin, end}, .size = Bytes(size)});
  };
  const std::int64_t end = 40 * layers;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::int64_t step = 20 * layer;
    for (int k = 0; k < 3; ++k)  // read again by the gradient
      add(step + 4 * k, end - step - 4 * k, 1024 * (1 + random.below(40)));
    for (int k = 0; k < 8; ++k)
      add(step + 2 * k, step + 2 * k + 3 + random.below(30), 512 * (1 + random.below(60)));
    for (int k = 0; k < 8; ++k) {
      const std::int64_t back = end - step - 20 + 2 * k;
      add(back, std::min(end, back + 3 + random.below(30)), 512 * (1 + random.below(60)));
    }
  }
  for (int k = 0; k < 4; ++k) add(end / 2 - 2 - k, end / 2 + 1 + k, 1024 * 1024 * (k + 1));
  return out;
}

TEST(PeakStack, ComesNearTheBoundWhereOneMomentDecides) {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    const Problem problem = training_with_loss(200, seed);
    const BodyModel model = make_bodies(problem, 0, {});
    std::vector<std::int64_t> places;  // all on top of each other
    std::int64_t top = 0;
    for (const Body& body : model.bodies) {
      places.push_back(top);
      top += body.height;
    }
    const std::int64_t before = height_of(model, places);
    const std::int64_t bound = lower_bound(model).bytes;
    Budget budget(2, true);
    EXPECT_TRUE(stack_peak(model, {.target = bound, .rules = {}, .seed = seed}, budget, places))
        << "seed " << seed;
    EXPECT_LT(height_of(model, places), before) << "seed " << seed;
    EXPECT_LE(height_of(model, places), bound + bound / 20) << "seed " << seed;
    Packing packing;
    packing.offsets.resize(problem.size());
    write_offsets(model, places, packing.offsets);
    packing.heights = {Bytes(height_of(model, places))};
    packing.status = PackStatus::kFeasible;
    const Status checked = check_packing(problem, packing);
    EXPECT_TRUE(checked) << checked.error().message << ", seed " << seed;
  }
}

TEST(PeakStack, LeavesAPackingAtItsTargetAlone) {
  const Problem problem = training_with_loss(20, 5);
  const BodyModel model = make_bodies(problem, 0, {});
  Skyline skyline(model);
  std::vector<std::int64_t> places;
  skyline.pass(priorities(model, Order::kArea), {}, places);
  const std::vector<std::int64_t> before = places;
  Budget budget(1, true);
  EXPECT_FALSE(stack_peak(model, {.target = height_of(model, places)}, budget, places));
  EXPECT_EQ(places, before);
}

TEST(PeakStack, LeavesProblemsWithFixedBodiesAlone) {
  Problem problem = training_with_loss(20, 6);
  problem.buffers[0].fixed = Offset(0);
  const BodyModel model = make_bodies(problem, 0, {});
  Skyline skyline(model);
  std::vector<std::int64_t> places;
  skyline.pass(priorities(model, Order::kArea), {}, places);
  Budget budget(1, true);
  EXPECT_FALSE(stack_peak(model, {}, budget, places));
}

TEST(PeakStack, HasNothingToImproveWithoutAPacking) {
  const BodyModel model;
  std::vector<std::int64_t> places;
  Budget budget(1, true);
  EXPECT_FALSE(stack_peak(model, {}, budget, places));
}

}  // namespace
}  // namespace plimsoll::pack
