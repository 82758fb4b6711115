#include "plimsoll/memory/recent_sizes.h"

#include <gtest/gtest.h>

namespace plimsoll::memory {
namespace {

TEST(RecentSizes, KnowsASizeThatComesBackInTime) {
  RecentSizes sizes;
  EXPECT_FALSE(sizes.came_back(4096, 1, 100));
  EXPECT_TRUE(sizes.came_back(4096, 50, 100));
  EXPECT_FALSE(sizes.came_back(4096, 200, 100)) << "too long ago";
  EXPECT_TRUE(sizes.came_back(4096, 201, 100)) << "remembered again";
}

TEST(RecentSizes, MayForgetButNeverInvents) {
  RecentSizes sizes;
  std::int64_t turn = 0;
  for (std::int64_t size = 512; size < 512 * 20000; size += 512) {
    EXPECT_FALSE(sizes.came_back(size, ++turn, 1 << 20));
  }
}

}  // namespace
}  // namespace plimsoll::memory
