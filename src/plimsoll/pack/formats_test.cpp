#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/csv.h"
#include "plimsoll/pack/json.h"
#include "plimsoll/pack/pack.h"
#include "plimsoll/pack/pack_c.h"
#include "plimsoll/pack/testing/brute_force.h"

namespace plimsoll::pack {
namespace {

std::string csv_error(const std::string& text) {
  const auto problem = read_csv(text);
  return problem ? "accepted" : problem.error().message;
}

TEST(PackCsv, ReadsMiniMallocsColumnsInAnyOrder) {
  const auto problem = read_csv("size,id,upper,lower,alignment,gaps,offset,hint\r\n"
                                "8,a,9,0,4,2-3 5-6:0-4,,16\r\n"
                                "4,b,3,0,,,12,\r\n");
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(problem->gaps.size(), 2u);
  EXPECT_EQ(problem->gaps[1].window, (Interval<std::int64_t>{0, 4}));
  EXPECT_EQ(problem->buffers[0].hint, Offset(16));
  EXPECT_EQ(problem->buffers[1].fixed, Offset(12));
}

TEST(PackCsv, ErrorsNameLineAndColumn) {
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,2,x,4\n"),
            "line 2, column 3 (upper): 'x' is not a whole number");
  EXPECT_EQ(csv_error("id,lower,upper\n"), "line 1: column 'size' is missing");
  EXPECT_EQ(csv_error("id,lower,upper,size,color\n"), "line 1, column 5: unknown column 'color'");
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,2,3\n"), "line 2: fewer cells, expected 4");
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,2,3,4,5\n"), "line 2: more cells, expected 4");
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,5,3,4\n"),
            "line 2, column 3 (upper): '3' is before the lower end");
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,2,3,99999999999999999999\n"),
            "line 2, column 4 (size): '99999999999999999999' is too large");
  EXPECT_NE(csv_error("id,lower,upper,size\na,0,1,1\na,0,1,1\n").find("'a'"), std::string::npos);
  EXPECT_NE(csv_error("id,lower,upper,size\n1,0,1,1\n1,0,1,1\n").find("already"), std::string::npos);
  EXPECT_NE(csv_error("").find("empty"), std::string::npos);
}

TEST(PackFormats, ProblemsSurviveBothFormats) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Problem problem = testing::random_small(random, 8, {});
    const auto json = read_json(write_json(problem));
    ASSERT_TRUE(json) << json.error().message << " seed " << seed;
    Problem expected = problem;  // an all-default side vector is the same as none
    if (json->ends.empty()) expected.ends.clear();
    EXPECT_EQ(*json, expected) << "seed " << seed;
    Problem plain;
    plain.buffers = problem.buffers;
    plain.gaps = problem.gaps;
    const auto csv = read_csv(write_csv(plain, nullptr));
    ASSERT_TRUE(csv) << csv.error().message << " seed " << seed;
    EXPECT_EQ(*csv, plain) << "seed " << seed;
  }
}

TEST(PackFormats, PackingsAreReadBackByName) {
  const auto problem = read_csv("id,lower,upper,size\nx,0,3,4\ny,0,9,8\n");
  ASSERT_TRUE(problem);
  const auto packing = pack(*problem, {});
  const auto csv = read_packing_csv(*problem, write_csv(*problem, &*packing));
  ASSERT_TRUE(csv) << csv.error().message;
  EXPECT_EQ(csv->offsets, packing->offsets);
  const auto json = read_packing_json(*problem, write_packing_json(*problem, *packing, true));
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->offsets, packing->offsets);
  EXPECT_FALSE(read_packing_csv(*problem, "id,lower,upper,size,offset\nx,0,3,4,0\n"));
}

TEST(PackJson, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "[]", "{", R"({"buffers":1})", R"({"buffers":[{}]})", R"({"buffers":[{"size":1.5}]})",
        R"({"buffers":[],"colour":1})", R"({"buffers":[{"size":1,"id":"a"},{"size":1,"id":"a"}]})",
        R"({"buffers":[{"size":18446744073709551615}]})", R"({"schema":2,"buffers":[]})",
        R"({"buffers":[{"size":1}],"contiguous":[["z"]]})",
        R"({"streams":2,"buffers":[{"size":1,"ready":[1],"released":[1,2]}]})"}) {
    EXPECT_FALSE(read_json(text)) << text;
  }
}

TEST(PackC, PacksTheHarbour) {
  plimsoll_pack* handle = plimsoll_pack_new();
  plimsoll_pack_add_buffer(handle, 0, 3, 4, 1);
  plimsoll_pack_add_buffer(handle, 3, 9, 4, 1);
  const std::int64_t third = plimsoll_pack_add_buffer(handle, 0, 9, 8, 1);
  EXPECT_EQ(third, 2);
  EXPECT_EQ(plimsoll_pack_solve(handle, -1, 1, 1), 0);
  EXPECT_EQ(plimsoll_pack_height(handle), 12);
  EXPECT_STREQ(plimsoll_pack_status(handle), "optimal");
  EXPECT_GE(plimsoll_pack_offset(handle, 2), 0);
  EXPECT_EQ(plimsoll_pack_offset(handle, 3), -1);
  EXPECT_EQ(plimsoll_pack_solve(handle, 11, 1, 1), 4);
  EXPECT_EQ(plimsoll_pack_fix(handle, 9, 0), 2);
  EXPECT_EQ(plimsoll_pack_read_json(handle, "{", 1), 3);
  plimsoll_pack_free(handle);
}

}  // namespace
}  // namespace plimsoll::pack
