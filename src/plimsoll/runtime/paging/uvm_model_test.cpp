#include "plimsoll/runtime/paging/uvm_model.h"

#include <gtest/gtest.h>

namespace plimsoll::runtime {
namespace {

std::vector<VirtualLaunch> forward_and_back(int layers) {
  std::vector<VirtualLaunch> out;
  const auto pages = [](std::int64_t page) {
    return Interval<std::int64_t>{page * (2_MiB).value, (page + 1) * (2_MiB).value};
  };
  for (int l = 0; l < layers; ++l) out.push_back({pages(l), pages(l + 1)});
  for (int l = layers; l-- > 0;) out.push_back({pages(l + 1), pages(l)});
  return out;
}

TEST(UvmModel, WhatFitsCostsNothing) {
  UvmModelOptions options;
  options.capacity = 32_MiB;
  options.compute_seconds = 0.5;
  const UvmModelResult result = model_managed_memory(forward_and_back(10), options);
  EXPECT_EQ(result.faults, 0);
  EXPECT_EQ(result.in + result.out, Bytes(0));
  EXPECT_EQ(result.seconds, 0.5);
}

TEST(UvmModel, EvictsInOrderOfArrival) {
  UvmModelOptions options;
  options.capacity = 8_MiB;  // four of eleven pages
  options.in_bytes_per_second = options.out_bytes_per_second = 1e9;
  const UvmModelResult result = model_managed_memory(forward_and_back(10), options);
  // By hand: the step ends with pages 3 2 1 0, in order of arrival. On the way up page 4 drives out
  // 3, 5 drives out 2, ...: 4 to 10 fault, 10 arriving last of 7 8 9 10. On the way down 6 to 0 do.
  EXPECT_EQ(result.faults, 14);
  EXPECT_EQ(result.in, 28_MiB);
  EXPECT_EQ(result.out, 28_MiB);
  EXPECT_NEAR(result.seconds, 14 * 30e-6 + 2 * 28 * 1.048576e-3, 1e-9);
}

}  // namespace
}  // namespace plimsoll::runtime
