#include "plimsoll/runtime/paging/access_order.h"

#include <gtest/gtest.h>

#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::runtime {
namespace {

using Numbers = AccessOrder::Numbers;

TEST(AccessOrder, TheExampleOfItsHeader) {
  AccessOrder order;
  EXPECT_EQ(order.before_write({0, 8}), (Numbers{0, 0, 0}));
  order.write({0, 8}, 0, 1);
  EXPECT_EQ(order.before_read({0, 8}), (Numbers{1, 0, 0}));
  order.read({0, 8}, 1, 1);
  EXPECT_EQ(order.before_write({4, 8}), (Numbers{1, 1, 0}));
  order.write({4, 8}, 2, 1);
  EXPECT_EQ(order.before_read({0, 4}), (Numbers{1, 0, 0}));
  EXPECT_EQ(order.before_read({0, 8}), (Numbers{1, 0, 1}));
  EXPECT_EQ(order.before_write({0, 8}), (Numbers{1, 1, 1}));
  order.clear();
  EXPECT_EQ(order.before_write({0, 8}), (Numbers{0, 0, 0}));
}

// Against a list of everything that ever touched a byte. Whoever waits for a writer is behind all
// that the writer waited for, so only what came after the last write counts.
TEST(AccessOrder, AgreesWithAListPerByte) {
  constexpr std::int64_t kBytes = 40;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    struct Byte {
      Numbers writes{};
      Numbers reads{};
    };
    std::vector<Byte> bytes(kBytes);
    AccessOrder order;
    Numbers last{};
    for (int i = 0; i < 60; ++i) {
      const std::int64_t begin = random.below(kBytes);
      const std::int64_t end = begin + 1 + random.below(kBytes - begin);
      const auto stream = static_cast<std::size_t>(random.below(3));
      Numbers read{};
      Numbers write{};
      for (std::int64_t b = begin; b < end; ++b) {
        const Byte& byte = bytes[static_cast<std::size_t>(b)];
        AccessOrder::join(read, byte.writes);
        AccessOrder::join(write, byte.writes);
        AccessOrder::join(write, byte.reads);
      }
      ASSERT_EQ(order.before_read({begin, end}), read);
      ASSERT_EQ(order.before_write({begin, end}), write);
      const std::int64_t number = ++last[stream];
      const bool writes = random.below(2) == 0;
      if (writes) {
        order.write({begin, end}, stream, number);
      } else {
        order.read({begin, end}, stream, number);
      }
      for (std::int64_t b = begin; b < end; ++b) {
        Byte& byte = bytes[static_cast<std::size_t>(b)];
        if (writes) byte = {};
        (writes ? byte.writes : byte.reads)[stream] = number;
      }
    }
  }
}

}  // namespace
}  // namespace plimsoll::runtime
