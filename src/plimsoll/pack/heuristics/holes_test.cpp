#include "plimsoll/pack/heuristics/holes.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"

namespace plimsoll::pack {
namespace {

BodyModel model_of(std::int32_t sections, const std::vector<Body>& bodies) {
  BodyModel model;
  model.sections = sections;
  model.bodies = bodies;
  return model;
}
Body body(std::int32_t first, std::int32_t last, std::int64_t height) {
  Body out;
  out.first = first;
  out.last = last;
  out.height = height;
  return out;
}

TEST(Holes, TakeAsManyBodiesAsFitAboveAndBesideEachOther) {
  const BodyModel model = model_of(4, {body(0, 3, 2), body(0, 4, 1), body(3, 4, 1), body(0, 4, 9)});
  const std::vector<std::uint32_t> by_first = {0, 1, 3, 2};
  const std::vector<float> priority = {3, 2, 1, 4};
  ItemIndex items;
  items.load(model, by_first, priority);
  std::vector<std::int64_t> places(4, -1);
  fill_holes(model, {{{0, 4}, {10, 13}}}, items, places);
  EXPECT_EQ(places, (std::vector<std::int64_t>{10, 12, 10, -1}))
      << "the last is too high for the hole";
}

TEST(Holes, NarrowOnesAreFilledFirstSoThatLongBodiesFindTheWide) {
  const BodyModel model = model_of(3, {body(0, 1, 1), body(0, 3, 1)});
  const std::vector<std::uint32_t> by_first = {0, 1};
  const std::vector<float> priority = {9, 1};
  ItemIndex items;
  items.load(model, by_first, priority);
  std::vector<std::int64_t> places(2, -1);
  fill_holes(model, {{{0, 3}, {5, 6}}, {{0, 1}, {8, 9}}}, items, places);
  EXPECT_EQ(places, (std::vector<std::int64_t>{8, 5}));
}

TEST(Holes, ItemsAreFoundAsByLookingAtAllOfThem) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const auto sections = static_cast<std::int32_t>(random.between(1, 60));
    std::vector<Body> bodies;
    std::vector<float> priority;
    for (std::int64_t k = random.between(1, 300); k > 0; --k) {
      const auto first = static_cast<std::int32_t>(random.below(sections));
      bodies.push_back(body(first, static_cast<std::int32_t>(random.between(first + 1, sections)),
                            random.between(1, 9)));
      priority.push_back(static_cast<float>(random.uniform()));
    }
    std::sort(bodies.begin(), bodies.end(), [](auto& a, auto& b) { return a.first < b.first; });
    std::vector<std::uint32_t> all(bodies.size());
    for (std::uint32_t b = 0; b < all.size(); ++b) all[b] = b;
    ItemIndex items;
    items.load(model_of(sections, bodies), all, priority);
    while (true) {
      const auto x = static_cast<std::int32_t>(random.below(sections));
      const auto y = static_cast<std::int32_t>(random.between(x + 1, sections));
      const ItemIndex::Want want{
          .within = {x, y},
          .covering = random.chance(0.5) ? -1 : static_cast<std::int32_t>(random.between(x, y - 1)),
          .highest = random.between(1, 9)};
      std::int32_t expected = -1;
      for (std::uint32_t b = 0; b < bodies.size(); ++b) {
        const Body& it = bodies[b];
        const bool fits =
            !items.removed(static_cast<std::int32_t>(b)) && it.first >= x && it.last <= y &&
            it.height <= want.highest &&
            (want.covering < 0 || (it.first <= want.covering && want.covering < it.last));
        if (fits && (expected < 0 || priority[b] > priority[static_cast<std::size_t>(expected)]))
          expected = static_cast<std::int32_t>(b);
      }
      ASSERT_EQ(items.best(want), expected) << "seed " << seed;
      if (expected < 0) break;
      items.remove(expected);
    }
  }
}

}  // namespace
}  // namespace plimsoll::pack
