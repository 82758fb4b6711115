#include "plimsoll/base/nearest_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll {
namespace {

TEST(NearestName, CountsEditsAndSwapsOfNeighbours) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("resnte50", "resnet50"), 1);
}

TEST(NearestName, FindsTheTypingErrorAndNothingElse) {
  const std::vector<std::string> names = {"alexnet", "resnet50", "resnet101", "gpt2"};
  EXPECT_EQ(nearest_name("resnet5O", names), "resnet50");
  EXPECT_EQ(nearest_name("alxenet", names), "alexnet");
  EXPECT_EQ(nearest_name("gtp2", names), "gpt2");
  EXPECT_EQ(nearest_name("transformer-xl", names), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), names), "");
}

}  // namespace
}  // namespace plimsoll
