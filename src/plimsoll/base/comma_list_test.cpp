#include "plimsoll/base/comma_list.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

using Words = std::vector<std::string_view>;

TEST(CommaList, SplitsAtCommas) {
  EXPECT_EQ(comma_list("memo"), (Words{"memo"}));
  EXPECT_EQ(comma_list("swap,encode"), (Words{"swap", "encode"}));
  EXPECT_EQ(comma_list(""), Words{});
  EXPECT_EQ(comma_list("swap,"), (Words{"swap"}));
  EXPECT_EQ(comma_list("a,,b"), (Words{"a", "", "b"}));
  EXPECT_EQ(comma_list(","), (Words{""}));
}

}  // namespace
}  // namespace plimsoll
