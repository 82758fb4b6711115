#include "plimsoll/report/markup.h"

#include <gtest/gtest.h>

namespace plimsoll::report {
namespace {

TEST(Markup, NamesAreNeverMarkup) {
  EXPECT_EQ(escaped("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(escaped("Netz für 模型 🚢"), "Netz für 模型 🚢");
  EXPECT_EQ(escaped(std::string_view("a\0b\x7f\n", 5)), "a?b??");
}

TEST(Markup, BytesThatAreNoTextBecomeQuestionMarks) {
  EXPECT_EQ(escaped("\xff"), "?");
  EXPECT_EQ(escaped("\xc3"), "?") << "cut off";
  EXPECT_EQ(escaped("\xc0\xaf"), "??") << "a longer form than needed";
  EXPECT_EQ(escaped("\xed\xa0\x80"), "???") << "half of a surrogate pair";
  EXPECT_EQ(escaped("\xf4\x90\x80\x80"), "????") << "above the last character";
  EXPECT_EQ(escaped("\xe6\xa8<"), "??&lt;");
}

}  // namespace
}  // namespace plimsoll::report
