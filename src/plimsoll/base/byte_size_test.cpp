#include "plimsoll/base/byte_size.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(ParseByteSize, ReadsBinaryDecimalAndBareNumbers) {
  EXPECT_EQ(parse_byte_size("1.5GiB")->value, 1610612736);
  EXPECT_EQ(parse_byte_size("800MB")->value, 800000000);
  EXPECT_EQ(parse_byte_size("123456")->value, 123456);
  EXPECT_EQ(parse_byte_size("2k")->value, 2048);
  EXPECT_EQ(parse_byte_size(" 3 mib ")->value, 3 << 20);
  EXPECT_EQ(parse_byte_size("0")->value, 0);
}

TEST(ParseByteSize, TakesAPercentageOnlyOfAWhole) {
  EXPECT_EQ(parse_byte_size("40%", Bytes(1000))->value, 400);
  EXPECT_EQ(parse_byte_size("40%").error().code, ErrorCode::kUsage);
  EXPECT_TRUE(is_percentage("40%"));
  EXPECT_FALSE(is_percentage("40"));
}

TEST(ParseByteSize, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "GiB", "-1", "1.5XB", "nan", "inf", "1e400", "9999999PiB", "0.1", "1 2"}) {
    EXPECT_FALSE(parse_byte_size(text).has_value()) << text;
  }
}

TEST(Human, KeepsAboutThreeDigits) {
  EXPECT_EQ(human(Bytes(17)), "17 B");
  EXPECT_EQ(human(Bytes(1610612736)), "1.50 GiB");
  EXPECT_EQ(human(Bytes(851443712)), "812.0 MiB");
  EXPECT_EQ(grouped(1610612736), "1,610,612,736");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1000), "-1,000");
}

TEST(ByteSize, TimesHaveThreeDigitsAndNoExponent) {
  EXPECT_EQ(human_seconds(0), "0 s");
  EXPECT_EQ(human_seconds(4.78), "4.78 s");
  EXPECT_EQ(human_seconds(4780), "4780 s");
  EXPECT_EQ(human_seconds(0.0009996), "1.00 ms");
  EXPECT_EQ(human_seconds(0.3204), "320 ms");
  EXPECT_EQ(human_seconds(0.9996), "1.00 s");
  EXPECT_EQ(human_seconds(12.34e-6), "12.3 µs");
  EXPECT_EQ(human_seconds(-0.5), "-500 ms");
  EXPECT_EQ(human_seconds(1e-12), "0 µs");
  EXPECT_EQ(human_seconds(2.5e7), "25,000,000");
  for (double seconds = 1e-12; seconds < 1e12; seconds *= 1.37)
    EXPECT_EQ(human_seconds(seconds).find('e'), std::string::npos) << seconds;
}

TEST(ParseSeconds, ReadsUnits) {
  EXPECT_DOUBLE_EQ(*parse_seconds("250ms"), 0.25);
  EXPECT_DOUBLE_EQ(*parse_seconds("2m"), 120);
  EXPECT_DOUBLE_EQ(*parse_seconds("1.5"), 1.5);
  EXPECT_FALSE(parse_seconds("soon").has_value());
}

}  // namespace
}  // namespace plimsoll
