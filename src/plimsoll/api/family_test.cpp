#include "plimsoll/api/family.h"

#include <gtest/gtest.h>

#include "plimsoll/api/plan_files.h"
#include "plimsoll/api/testing/same_bits.h"
#include "plimsoll/base/file.h"

namespace plimsoll::api {
namespace {

TEST(Family, SizesAreARangeOfOneOption) {
  const auto sizes = parse_sizes("batch=1..64");
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->option, "batch");
  EXPECT_EQ(sizes->low, 1);
  EXPECT_EQ(sizes->high, 64);
  for (const char* wrong : {"", "batch", "batch=", "batch=3", "batch=3..", "batch=0..3", "batch=4..3", "width=1..2", "batch=1..2x", "batch=1..999999999"}) {
    EXPECT_FALSE(parse_sizes(wrong)) << wrong;
  }
}

TEST(Family, SmallerSizesRunAtTheOffsetsOfTheLargest) {
  for (const bool train : {true, false}) {
    SCOPED_TRACE(train);
    ModelRequest request;
    request.model = "resnet18";
    request.sizes = {.image = 32, .width = 8, .classes = 10};
    request.train = train;
    request.threads = 1;
    const auto family = plan_family(request, "cpu", {}, {"batch", 1, 5});
    ASSERT_TRUE(family) << family.error().message;
    ASSERT_EQ(family->size(), 5u);
    const plan::Plan& largest = family->back().plan;
    int shared = 0;
    for (const FamilyMember& member : *family) {
      EXPECT_LE(member.plan.arena_bytes(), largest.arena_bytes()) << member.size;
      if (!member.shared) continue;
      ++shared;
      for (std::size_t b = 0; b < largest.buffers.size(); ++b) EXPECT_EQ(member.plan.buffers[b].offset, largest.buffers[b].offset);
      const auto expected = run_on_demand_for(member.plan.graph, 1);
      ASSERT_TRUE(expected) << expected.error().message;
      const auto got = run_planned_for(member.plan, 1);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_TRUE(*got == *expected) << member.size;
    }
    EXPECT_GE(shared, 4);
  }
}

TEST(Family, AnIndexGivesThePlanOfASizeWithoutPlanning) {
  ModelRequest request;
  request.model = "mlp";
  request.train = false;
  request.threads = 1;
  const SizeRange sizes{"batch", 2, 4};
  const auto family = plan_family(request, "cpu", {}, sizes);
  ASSERT_TRUE(family) << family.error().message;
  const std::string index = testing::TempDir() + "family_test.json";
  ASSERT_TRUE(write_family(index, sizes, *family));
  EXPECT_TRUE(*read_plan(index, {.batch = 3}) == (*family)[1].plan);
  EXPECT_TRUE(*read_plan(index, {}) == family->back().plan);
  EXPECT_EQ(read_plan(index, {.batch = 9}).error().code, ErrorCode::kUsage);
  const auto got = run_planned_for(*read_plan(index, {.batch = 3}), 1);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == *run_on_demand_for((*family)[1].plan.graph, 1));
}

TEST(Family, AnIndexThatIsNoneOrLeadsElsewhereIsRefused) {
  const std::string file = testing::TempDir() + "family_wrong.json";
  for (const char* members : {"[]", "7", "[3]", R"([{"size": 1}])", R"([{"size": 1, "file": "../up.json"}])", R"([{"size": 1, "file": ""}])",
                              R"([{"size": "1", "file": "a.json"}])", R"([{"size": 1, "file": "no such.json"}])"}) {
    ASSERT_TRUE(write_file(file, fmt::format(R"({{"kind": "plimsoll family", "schema": 1, "option": "batch", "members": {}}})", members)));
    EXPECT_EQ(read_plan(file, {}).error().code, ErrorCode::kBadInput) << members;
  }
}

}  // namespace
}  // namespace plimsoll::api
