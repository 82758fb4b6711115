#include "plimsoll/schedule/link.h"

#include <gtest/gtest.h>

namespace plimsoll::schedule {
namespace {

TEST(Link, IsReadInBitsAndBytes) {
  EXPECT_DOUBLE_EQ(parse_link("400Gb/s")->bytes_per_second, 50e9);
  EXPECT_DOUBLE_EQ(parse_link("25GB/s")->bytes_per_second, 25e9);
  EXPECT_DOUBLE_EQ(parse_link("1MiB/s")->bytes_per_second, 1048576);
  EXPECT_DOUBLE_EQ(parse_link("10Gb/s,50us")->latency_seconds, 50e-6);
  for (const char* wrong : {"", "400", "400Gb", "Gb/s", "-1Gb/s", "1Zb/s", "1Gb/s,fast"})
    EXPECT_EQ(parse_link(wrong).error().code, ErrorCode::kUsage) << wrong;
}

// 8 MB on 4 ranks at 1 GB/s, 10 us: a ring sends 6 messages of 2 MB.
TEST(Link, TakesTheFasterOfRingAndTree) {
  const Link link{1e9, 10e-6};
  EXPECT_NEAR(all_reduce_seconds(link, 4, Bytes(8'000'000)), 6 * (10e-6 + 2e-3), 1e-9);
  EXPECT_NEAR(all_reduce_seconds(link, 1024, Bytes(100)), 20 * (10e-6 + 1e-7), 1e-9);
  EXPECT_EQ(all_reduce_seconds(link, 1, Bytes(100)), 0);
}

TEST(Link, MakesAtMostEightBuckets) {
  const Link link{1e9, 10e-6};
  EXPECT_GE(bucket_size(link, 2, Bytes(100'000'000)).value, 100'000'000 / kMostBuckets);
  // latency is all there is: one message
  EXPECT_EQ(bucket_size(link, 2, Bytes(1000)).value, 1000);
}

}  // namespace
}  // namespace plimsoll::schedule
