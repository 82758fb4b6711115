#include "plimsoll/plan/plan_set_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::plan {
namespace {

using ::testing::HasSubstr;

std::string index_of(std::string_view members) {
  return fmt::format(
      R"({{"kind": "plimsoll family", "schema": 1, "option": "batch", "members": [{}]}})", members);
}

std::string refusal(std::string_view members) {
  const auto index = parse_plan_set_index(index_of(members));
  EXPECT_FALSE(index) << members;
  return index ? "" : index.error().message;
}

TEST(PlanSetIndex, MembersAreSortedBySize) {
  const auto index = parse_plan_set_index(
      index_of(R"({"size": 8, "file": "b.json", "arena_bytes": 64, "shared": true}, )"
               R"({"size": 2, "file": "a.json"})"));
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(*index,
            (PlanSetIndex{"batch", {{2, "a.json", std::nullopt}, {8, "b.json", Bytes(64)}}}));
}

TEST(PlanSetIndex, NamesThatLeadElsewhereAreRefused) {
  for (const char* file :
       {"../a.json", "/etc/passwd", "x/a.json", ".", "..", "", "a\\u0000.json"}) {
    EXPECT_THAT(refusal(fmt::format(R"({{"size": 1, "file": "{}"}})", file)),
                HasSubstr("expects a name beside the index"))
        << file;
  }
}

TEST(PlanSetIndex, WrongMembersAreRefused) {
  for (const char* member :
       {"7", "[]", "{}", R"({"size": 0, "file": "a"})", R"({"size": -1, "file": "a"})",
        R"({"size": 1.5, "file": "a"})", R"({"size": 18446744073709551615, "file": "a"})",
        R"({"size": 1, "file": 3})"}) {
    EXPECT_THAT(refusal(member), HasSubstr("a member should be {size, file}")) << member;
  }
  EXPECT_THAT(refusal(R"({"size": 1, "file": "a", "arena_bytes": -4})"),
              HasSubstr("`arena_bytes` should be"));
  EXPECT_THAT(refusal(R"({"size": 1, "file": "a"}, {"size": 1, "file": "b"})"),
              HasSubstr("two members have the size 1"));
  EXPECT_THAT(refusal(""), HasSubstr("an index has an option"));
}

}  // namespace
}  // namespace plimsoll::plan
