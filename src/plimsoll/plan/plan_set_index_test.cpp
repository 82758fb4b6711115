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
            (PlanSetIndex{{"batch"}, {{{2}, "a.json", std::nullopt}, {{8}, "b.json", Bytes(64)}}}));
}

TEST(PlanSetIndex, MembersOfSeveralOptionsHaveASizeForEach) {
  const auto several = [](std::string_view options, std::string_view members) {
    return parse_plan_set_index(
        fmt::format(R"({{"kind": "plimsoll family", "schema": 1, "options": {}, "members": [{}]}})",
                    options, members));
  };
  const std::string members =
      R"({"size": [2, 5], "file": "b.json"}, {"size": [1, 9], "file": "a.json"})";
  const auto index = several(R"(["batch", "seq"])", members);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(*index,
            (PlanSetIndex{{"batch", "seq"},
                          {{{1, 9}, "a.json", std::nullopt}, {{2, 5}, "b.json", std::nullopt}}}));
  for (const char* options :
       {"[]", R"(["batch"])", R"(["batch", "batch"])", R"(["batch", "width"])", R"(["batch", 7])",
        R"(["batch", "seq", "seq"])", "{}"})
    EXPECT_FALSE(several(options, members)) << options;
  for (const char* size : {"1", "[1]", "[1, 0]", "[1, 2, 3]", R"([1, "2"])", "[]"})
    EXPECT_FALSE(
        several(R"(["batch", "seq"])", fmt::format(R"({{"size": {}, "file": "a"}})", size)))
        << size;
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
