#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/formats/csv.h"
#include "plimsoll/pack/formats/json.h"
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
  const auto problem = read_csv(
      "size,id,upper,lower,alignment,gaps,offset,hint\r\n"
      "8,a,9,0,4,2-3 5-6:0-4,,16\r\n"
      "4,b,3,0,,,12,\r\n");
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(problem->gaps.size(), 2u);
  EXPECT_EQ(problem->gaps[1].window, (Interval<std::int64_t>{0, 4}));
  EXPECT_EQ(problem->buffers[0].hint, Offset(16));
  EXPECT_EQ(problem->buffers[1].fixed, Offset(12));
}

TEST(PackCsv, ReadsMiniMallocsOwnSpellings) {
  // An `end` is of the last moment, and so are the ends of gaps beside it.
  const auto problem = read_csv(
      "buffer_id,start,end,size,gaps\n"
      "a,0,8,8,2-2 5-6@0:4\n"
      "b,3,3,4,\n");
  ASSERT_TRUE(problem) << problem.error().message;
  const auto ours = read_csv(
      "id,lower,upper,size,gaps\n"
      "a,0,9,8,2-3 5-7:0-4\n"
      "b,3,4,4,\n");
  ASSERT_TRUE(ours) << ours.error().message;
  EXPECT_EQ(*problem, *ours);
  // Its newer files have half-open columns and the same gaps.
  const auto newer = read_csv("buffer,begin,upper,size,gaps\na,0,9,8,2-3 5-7@0:4\nb,3,4,4,\n");
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_EQ(*newer, *ours);
}

TEST(PackCsv, ErrorsNameLineAndColumn) {
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,2,x,4\n"),
            "line 2, column 3 (upper): 'x' is not a whole number");
  EXPECT_EQ(csv_error("\nid,lower,upper,size\n\na,0,1,1\n\nb,0,1,1\na,0,1,1\n"),
            "line 7, column 1 (id): id 'a' is that of line 4 already");
  EXPECT_EQ(csv_error("id,lower,upper,size,gaps\na,0,9,1,\nb,0,9,1,2-3 1-2\n"),
            "line 3, column 5 (gaps): buffer 'b': gaps overlap or are not in ascending order");
  EXPECT_EQ(csv_error("id,lower,upper,size,offset\na,0,9,8,4611686018427387904\n"),
            "line 2, column 5 (offset): buffer 'a': fixed at 4611686018427387904, which leaves no "
            "room for "
            "all others below 2^62");
  EXPECT_EQ(csv_error("id,size,upper,lower\na,4611686018427387904,1,0\nb,1,1,0\n"),
            "line 3, column 2 (size): buffer 'b': sizes and alignments up to here add up to more "
            "than 2^62");
  EXPECT_EQ(csv_error("id,lower,upper\n"), "line 1, column 4: column 'size' is missing");
  EXPECT_EQ(csv_error("id,lower,upper,size,color\n"),
            "line 1, column 5: unknown column 'color'; there are id, lower, upper, size, "
            "alignment, gaps, offset and hint");
  EXPECT_EQ(csv_error("buffer,start,end,size,upper\n"),
            "line 1, column 5: column 'upper' is there twice, as 'end' before");
  EXPECT_EQ(csv_error("id,start,end,size\na,5,x,4\n"),
            "line 2, column 3 (end): 'x' is not a whole number");
  EXPECT_NE(csv_error("id,lower,upper,size,gaps\na,0,9,4,5-7@0\n").find("from-to@lo:hi"),
            std::string::npos);
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,2,3\n"), "line 2, column 3: fewer cells, expected 4");
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,2,3,4,5\n"),
            "line 2, column 5: more cells, expected 4");
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,5,3,4\n"),
            "line 2, column 3 (upper): '3' is before the lower end");
  EXPECT_EQ(csv_error("id,lower,upper,size\n1,2,3,99999999999999999999\n"),
            "line 2, column 4 (size): '99999999999999999999' is too large");
  EXPECT_NE(csv_error("id,lower,upper,size\na,0,1,1\na,0,1,1\n").find("'a'"), std::string::npos);
  EXPECT_NE(csv_error("id,lower,upper,size\n1,0,1,1\n1,0,1,1\n").find("already"),
            std::string::npos);
  EXPECT_NE(csv_error("").find("empty"), std::string::npos);
}

std::string json_error(const std::string& text) {
  const auto problem = read_json(text);
  return problem ? "accepted" : problem.error().message;
}

TEST(PackJson, ErrorsNameLineAndColumn) {
  EXPECT_EQ(json_error("{\"buffers\": [\n  {\"size\": 4,}]}"),
            "line 2, column 14: this is not valid JSON");
  EXPECT_EQ(json_error("{\"buffers\": [{\"size\": 4},\n {\"id\": \"x\", \"size\": -1}]}"),
            "line 2, column 22: buffers[1].size: missing or negative");
  EXPECT_EQ(json_error("{\"buffers\": [{\"size\": 4},\n {\"id\": \"0\", \"size\": 1}]}"),
            "line 2, column 9: buffers[1].id: '0' is there twice");
  EXPECT_EQ(json_error("{\"buffers\": [\n{\"size\": 4, \"lower\": 5, \"upper\": 3}]}"),
            "line 2, column 34: buffer '0': lifetime ends at 3, before it begins at 5");
  EXPECT_EQ(json_error("{\"contiguous\": [[\"0\"], [\"q}\", \"r\"]],\n \"buffers\": [{\"size\": 4, "
                       "\"id\": \"0\"}]}"),
            "line 1, column 25: contiguous[1][0]: there is no buffer \"q}\"");
  EXPECT_EQ(json_error("{\"colocated\": [[\"0\",\n\"0\"]], \"buffers\": [{\"size\": 4}]}"),
            "line 2, column 1: co-located class 0: buffer '0' is listed twice");
  EXPECT_EQ(
      json_error(
          "{\"buffers\": [{\"size\": 4, \"upper\": 9, \"gaps\": [{\"lower\": 1, \"upper\": 2},\n"
          "{\"lower\": 1, \"upper\": 3}]}]}"),
      "line 2, column 1: buffer '0': gaps overlap or are not in ascending order");
  EXPECT_EQ(
      json_error("{\"memories\": [{\"slab\": 6}], \"buffers\": [{\"size\": 4, \"alignment\": 4}]}"),
      "line 1, column 66: memory 'main': slab 6 is no multiple of the alignment 4 of buffer '0'");
  EXPECT_EQ(json_error("{\"buffers\": [{\"size\": 4, \"fixed\": -3}]}"),
            "line 1, column 35: buffers[0].fixed: -3 is negative");
  EXPECT_EQ(json_error("[]"),
            "line 1, column 1: expected an object like "
            R"({"buffers": [{"lower": 0, "upper": 3, "size": 4}]})");
  EXPECT_EQ(json_error("{\"buffers\": [\n  1e999]}"),
            "line 2, column 3: the number 1e999 is too large");
}

TEST(PackFormats, AnOlderPackingBecomesHintsById) {
  auto problem = read_csv("id,lower,upper,size,hint\na,0,3,4,\nb,3,9,4,32\nc,0,9,4,8\n");
  ASSERT_TRUE(problem);
  ASSERT_TRUE(take_hints_csv(*problem,
                             "id,lower,upper,size,offset\nc,0,3,4,12\ngone,0,3,4,99\na,0,1,4,0\n"));
  EXPECT_EQ(problem->buffers[0].hint, Offset(0));
  EXPECT_EQ(problem->buffers[1].hint, Offset(32));
  EXPECT_EQ(problem->buffers[2].hint, Offset(12));
  ASSERT_TRUE(take_hints_json(*problem, "{\"offsets\": {\"b\": 4, \"gone\": 1}}"));
  EXPECT_EQ(problem->buffers[1].hint, Offset(4));
  EXPECT_FALSE(take_hints_json(*problem, "{\"offsets\": {\"b\": -4}}"));
  EXPECT_FALSE(take_hints_json(*problem, "{\"height\": 4}"));
}

TEST(PackFormats, ProblemsSurviveBothFormats) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Problem problem = testing::random_small(random, 8, {});
    const auto json = read_json(write_json(problem).value());
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
  const auto json =
      read_packing_json(*problem, write_packing_json(*problem, *packing, true).value());
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->offsets, packing->offsets);
}

TEST(PackFormats, APackingThatDoesNotMatchItsProblemIsRefusedWithTheLine) {
  const auto problem = read_csv("id,lower,upper,size\nx,0,3,4\ny,0,9,8\n");
  const auto refusal = [&](const char* text) {
    const auto packing = read_packing_csv(*problem, text);
    return packing ? std::string("accepted") : packing.error().message;
  };
  EXPECT_EQ(refusal("id,lower,upper,size,offset\nx,0,3,4,0\n"),
            "none of its 1 lines is for buffer 'y'");
  EXPECT_EQ(refusal("id,lower,upper,size,offset\nx,0,3,4,0\n\ny,0,9,8,\n"),
            "line 4, column 5 (offset): buffer 'y' has no offset");
  EXPECT_EQ(refusal("id,lower,upper,size\nx,0,3,4\ny,0,9,8\n"), "line 2: buffer 'x' has no offset");
  EXPECT_EQ(refusal("id,lower,upper,size,offset\nx,0,3,4,0\nz,0,1,1,0\ny,0,9,8,4\n"),
            "line 3, column 1 (id): buffer 'z' is not in the problem");
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
