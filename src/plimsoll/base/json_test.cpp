#include "plimsoll/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plimsoll/base/random.h"

namespace plimsoll {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  const auto tree = parse_json(text, limits);
  EXPECT_FALSE(tree) << text.substr(0, 80);
  if (tree) return "";
  EXPECT_EQ(tree.error().code, ErrorCode::kBadInput);
  return tree.error().message;
}

TEST(Json, BuildsWhatTheParserBeneathBuilds) {
  for (const char* text :
       {"{}", "[]", "null", " -0 ", "1.5e3", "18446744073709551615", "-9223372036854775808",
        "\"\\u00e9\\ud83d\\ude00\"",
        R"({"b": [1, {"c": [[], {}, null]}], "a": "x", "": {"a": true}})", "\xef\xbb\xbf[1]"}) {
    const auto tree = parse_json(text);
    ASSERT_TRUE(tree) << text << ": " << tree.error().message;
    EXPECT_EQ(*tree, json::parse(text)) << text;
  }
}

TEST(Json, WhatIsNoJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(refusal(""), "line 1, column 1: this is not valid JSON");
  EXPECT_EQ(refusal("{\"a\": 1,\n \"b\": x}"), "line 2, column 7: this is not valid JSON");
  EXPECT_EQ(refusal("[1] 2"), "line 1, column 5: this is not valid JSON");
  EXPECT_EQ(refusal("{\"a\":\n1e999}"), "line 2, column 1: the number 1e999 is too large");
  EXPECT_EQ(refusal("[\"\xff\"]"), "line 1, column 3: this is not UTF-8, which JSON must be");
  EXPECT_THAT(refusal("[\"\\ud800\"]"), HasSubstr("not valid JSON"));
}

// The parser beneath takes a NUL byte for the end: what follows it would be ignored.
TEST(Json, NothingHidesBehindANulByte) {
  EXPECT_EQ(refusal(std::string_view("{}\n\0{", 5)), "line 2, column 1: this is not valid JSON");
}

TEST(Json, EqualKeysAreRefused) {
  EXPECT_EQ(refusal("{\"a\": 1,\n \"a\": 2}"), "line 2, column 2: the key 'a' is there twice");
  EXPECT_TRUE(parse_json(R"({"a": {"a": 1}, "b": {"a": 1}})"));
}

TEST(Json, LimitsHoldToTheLastAllowedValue) {
  const JsonLimits limits{.bytes = 40, .depth = 3, .values = 6};
  EXPECT_TRUE(parse_json("[[[]]]", limits));
  EXPECT_EQ(refusal("[[[[]]]]", limits), "line 1, column 4: nested deeper than 3 levels");
  EXPECT_EQ(refusal("[{\"a\":{\"b\":[]}}]", limits),
            "line 1, column 12: nested deeper than 3 levels");
  EXPECT_TRUE(parse_json("[1,2,3,4,5]", limits));
  EXPECT_THAT(refusal("[1,2,3,4,5,6]", limits), HasSubstr("more than 6 values"));
  EXPECT_TRUE(parse_json(R"({"a":1,"b":2})", limits));
  EXPECT_THAT(refusal(R"({"a":1,"b":2,"c":3})", limits), HasSubstr("more than 6 values"));
  EXPECT_TRUE(parse_json("[\"" + std::string(36, 'x') + "\"]", limits));
  EXPECT_THAT(refusal("[\"" + std::string(37, 'x') + "\"]", limits),
              HasSubstr("line 1, column 1: 41 bytes are more than the 40"));
}

TEST(Json, DepthOfAMillionIsRefusedAtOnce) {
  EXPECT_THAT(refusal(std::string(1'000'000, '[')),
              HasSubstr("column 17: nested deeper than 16 levels"));
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(refusal(objects), HasSubstr("nested deeper"));
}

// Random damage: refused by both or read alike by both, where no limit of ours is met.
TEST(Json, AgreesWithTheParserBeneathOnDamagedText) {
  const std::string sound =
      R"({"a": [1, -2.5e3, {"k": "v\n\u20ac"}], "b": null, "c": {"d": true, "e": [[], "é"]}})";
  Random random(5);
  int read = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = sound;
    for (std::int64_t i = random.between(1, 3); i > 0; --i) {
      text[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size())))] =
          static_cast<char>("0e-.,:[]{}\"\\utr \xc3\xa9"[random.below(18)]);
    }
    const auto tree = parse_json(text);
    const json plain = json::parse(text, nullptr, false);
    if (!tree && tree.error().message.find("twice") != std::string::npos) continue;
    ASSERT_EQ(tree.has_value(), !plain.is_discarded()) << text;
    if (tree) {
      EXPECT_EQ(*tree, plain) << text;
      ++read;
    }
  }
  EXPECT_GT(read, 500);
}

TEST(Json, TextsThatAreNoUtf8AreWrittenAsReplacements) {
  EXPECT_EQ(json_text(json{{"caf\xe9", "\xff"}}), "{\"caf\xef\xbf\xbd\":\"\xef\xbf\xbd\"}");
  EXPECT_EQ(json_text(nlohmann::ordered_json{{"b", 1}, {"a", "\x80"}}),
            "{\"b\":1,\"a\":\"\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace plimsoll
