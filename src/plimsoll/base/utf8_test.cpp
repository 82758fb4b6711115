#include "plimsoll/base/utf8.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(Utf8, IsToldFromOtherBytes) {
  for (const char* text : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text :
       {"\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xff", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(text)) << excerpt(text);
  }
}

TEST(Utf8, ExcerptsAreOneLineAndHarmless) {
  EXPECT_EQ(excerpt("a\nb\x1b[31m\xff é"), "a\\x0ab\\x1b[31m\\xff é");
  EXPECT_EQ(excerpt(std::string(41, 'x')), std::string(40, 'x') + "...");
  EXPECT_EQ(excerpt(std::string(39, 'x') + "é"), std::string(39, 'x') + "...");
}

}  // namespace
}  // namespace plimsoll
