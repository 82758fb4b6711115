#include "plimsoll/plan/near_places.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"

namespace plimsoll::plan {
namespace {

PlanBuffer buffer(std::string name, std::int64_t bytes, std::int32_t begin, std::int32_t end,
                  std::int64_t offset = 0, Use use = Use::kActivation) {
  PlanBuffer out;
  out.name = std::move(name);
  out.bytes = Bytes(bytes);
  out.lifetime = {Step(begin), Step(end)};
  out.offset = Offset(offset);
  out.use = use;
  return out;
}

Plan plan_of(std::vector<PlanBuffer> buffers, std::int64_t bytes) {
  Plan out;
  out.buffers = std::move(buffers);
  out.arenas = {{"device", Bytes(bytes)}};
  return out;
}

std::vector<std::int64_t> offsets(const std::vector<PlanBuffer>& buffers) {
  std::vector<std::int64_t> out;
  for (const PlanBuffer& one : buffers) out.push_back((one.offset - Offset(0)).value);
  return out;
}

TEST(NearPlaces, BuffersGoWhereThoseOfTheirNamesLie) {
  const Plan other = plan_of({buffer("w", 64, 0, 9, 0, Use::kWeight), buffer("a", 128, 1, 4, 64),
                              buffer("a", 128, 2, 6, 192), buffer("b", 64, 5, 8, 320)},
                             384);
  std::vector<PlanBuffer> buffers = {buffer("w", 64, 0, 5, 0, Use::kWeight), buffer("a", 128, 1, 3),
                                     buffer("a", 64, 2, 4)};
  ASSERT_TRUE(take_near_places(buffers, other, Bytes(64)));
  EXPECT_EQ(offsets(buffers), (std::vector<std::int64_t>{0, 64, 192}));
}

TEST(NearPlaces, WhatLivesLongerThanItsImageGoesIntoAGap) {
  const Plan other = plan_of(
      {buffer("a", 128, 0, 2, 0), buffer("b", 128, 2, 4, 0), buffer("c", 128, 0, 4, 128)}, 384);
  std::vector<PlanBuffer> buffers = {buffer("a", 64, 0, 4), buffer("b", 128, 2, 4),
                                     buffer("c", 128, 0, 4)};
  ASSERT_TRUE(take_near_places(buffers, other, Bytes(64)));
  EXPECT_EQ(offsets(buffers), (std::vector<std::int64_t>{256, 0, 128}));
}

TEST(NearPlaces, StateLiesWhereItLayOrThereIsNoPlan) {
  const Plan other = plan_of({buffer("w", 64, 0, 9, 64, Use::kWeight)}, 128);
  std::vector<PlanBuffer> same = {buffer("w", 64, 0, 3, 0, Use::kWeight), buffer("x", 64, 0, 3)};
  ASSERT_TRUE(take_near_places(same, other, Bytes(64)));
  EXPECT_EQ(offsets(same), (std::vector<std::int64_t>{64, 0}));
  std::vector<PlanBuffer> unknown = {buffer("v", 64, 0, 3, 0, Use::kWeight)};
  EXPECT_FALSE(take_near_places(unknown, other, Bytes(64)));
  std::vector<PlanBuffer> too_much = {buffer("w", 64, 0, 3, 0, Use::kWeight),
                                      buffer("x", 128, 0, 3)};
  EXPECT_FALSE(take_near_places(too_much, other, Bytes(64)));
}

// Whatever it says yes to is a packing below the other's top, on random plans.
TEST(NearPlaces, NothingThatMeetsInTimeSharesBytes) {
  int packed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::vector<PlanBuffer> longer;
    std::int64_t top = 0;
    for (int i = 0; i < 30; ++i) {
      const auto begin = static_cast<std::int32_t>(random.below(20));
      const auto end = begin + 1 + static_cast<std::int32_t>(random.below(8));
      longer.push_back(
          buffer("b" + std::to_string(i % 20), 64 * (1 + random.below(6)), begin, end, top));
      top += longer.back().bytes.value / 2 / 64 * 64;
    }
    const Plan other = plan_of(longer, top + 64 * 6);
    std::vector<PlanBuffer> buffers;
    for (int i = 0; i < 20; ++i) {
      const auto begin = static_cast<std::int32_t>(random.below(15));
      buffers.push_back(buffer("b" + std::to_string(random.below(24)), 64 * (1 + random.below(6)),
                               begin, begin + 1 + static_cast<std::int32_t>(random.below(6))));
    }
    if (!take_near_places(buffers, other, Bytes(64))) continue;
    ++packed;
    for (std::size_t a = 0; a < buffers.size(); ++a) {
      const PlanBuffer& x = buffers[a];
      EXPECT_LE(x.offset + x.bytes, Offset(0) + other.arena_bytes());
      for (std::size_t b = 0; b < a; ++b) {
        const PlanBuffer& y = buffers[b];
        const bool in_time = x.lifetime.begin < y.lifetime.end && y.lifetime.begin < x.lifetime.end;
        const bool in_space = x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
        EXPECT_FALSE(in_time && in_space) << a << " and " << b;
      }
    }
  }
  EXPECT_GE(packed, 150);
}

}  // namespace
}  // namespace plimsoll::plan
