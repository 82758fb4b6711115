#include "plimsoll/runtime/paging/resident_map.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/random.h"

namespace plimsoll::runtime {
namespace {

BlockId block(std::size_t number) {
  return BlockId(number);
}

TEST(ResidentMap, TheExampleOfItsHeader) {
  ResidentMap map(Bytes(48));
  const std::vector<std::pair<std::int64_t, std::int64_t>> lying = {
      {0, 12}, {12, 6}, {18, 8}, {26, 4}, {36, 12}};  // a, b, c, d, a hole of 6, e
  for (std::size_t i = 0; i < lying.size(); ++i)
    map.place(block(i), Offset(lying[i].first), Bytes(lying[i].second));
  const std::vector<std::int64_t> price = {9, 2, 3, 1, 8};
  const auto room = map.room(Bytes(20), false, [&](BlockId id) { return price[id.index()]; });
  ASSERT_TRUE(room);
  EXPECT_EQ(room->at, Offset(12));
  EXPECT_EQ(room->evicted, (std::vector<BlockId>{block(1), block(2), block(3)}));
  EXPECT_EQ(room->price, 3);
  EXPECT_EQ(map.hole(Bytes(6), false), Offset(30));
  EXPECT_EQ(map.hole(Bytes(4), true), Offset(32));
  EXPECT_FALSE(map.hole(Bytes(7), false));
  EXPECT_EQ(map.cheapest([&](BlockId id) { return price[id.index()]; }), block(3));
  EXPECT_FALSE(map.room(Bytes(20), false, [](BlockId) { return ResidentMap::kStays; }));
}

// Every run of neighbours, one by one.
std::optional<std::int64_t> best_price(const std::vector<Interval<std::int64_t>>& lying,
                                       const std::vector<std::int64_t>& price,
                                       std::int64_t capacity, std::int64_t bytes) {
  std::optional<std::int64_t> out;
  for (std::int64_t at = 0; at + bytes <= capacity; ++at) {
    std::int64_t dearest = std::numeric_limits<std::int64_t>::min();
    for (std::size_t b = 0; b < lying.size(); ++b) {
      if (lying[b].meets({at, at + bytes})) dearest = std::max(dearest, price[b]);
    }
    if (dearest != ResidentMap::kStays && (!out || dearest < *out)) out = dearest;
  }
  return out;
}

TEST(ResidentMap, FindsTheCheapestRoomThereIs) {
  int rooms = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::int64_t capacity = 20 + random.below(60);
    ResidentMap map{Bytes(capacity)};
    std::vector<Interval<std::int64_t>> lying;
    std::vector<std::int64_t> price;
    for (std::int64_t at = random.below(5); at < capacity;) {
      const std::int64_t size = std::min(1 + random.below(9), capacity - at);
      map.place(block(lying.size()), Offset(at), Bytes(size));
      lying.push_back({at, at + size});
      price.push_back(random.below(6) == 0 ? ResidentMap::kStays : random.below(10));
      at += size + (random.below(2) == 0 ? 0 : random.below(6));
    }
    const std::int64_t wanted = 1 + random.below(capacity);
    const bool far_end = random.below(2) == 0;
    const auto room =
        map.room(Bytes(wanted), far_end, [&](BlockId id) { return price[id.index()]; });
    const auto expected = best_price(lying, price, capacity, wanted);
    ASSERT_EQ(room.has_value(), expected.has_value());
    if (!room) continue;
    ++rooms;
    EXPECT_EQ(room->price, *expected);
    for (std::size_t b = 0; b < lying.size(); ++b) {
      if (!lying[b].meets({room->at.value, room->at.value + wanted})) continue;
      EXPECT_TRUE(std::find(room->evicted.begin(), room->evicted.end(), block(b)) !=
                  room->evicted.end());
    }
  }
  EXPECT_GT(rooms, 200);
}

}  // namespace
}  // namespace plimsoll::runtime
