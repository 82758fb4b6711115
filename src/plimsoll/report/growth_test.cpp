#include "plimsoll/report/growth.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"

namespace plimsoll::report {
namespace {

TEST(Growth, AParabolaIsFoundFromWhatItGives) {
  const auto bytes = [](std::int64_t n) -> std::optional<std::int64_t> {
    return 7 + 3 * n + n * (n + 1) / 2;  // whole, though its coefficients are not
  };
  const auto found = fit_polynomial(5, 1, bytes, {100});
  ASSERT_TRUE(found);
  for (const std::int64_t n : {1, 2, 17, 1000, 99'999}) EXPECT_EQ(found->at(n), bytes(n)) << n;
}

TEST(Growth, ARoundedSizeHasALawAlongItsPeriodOnly) {
  const auto bytes = [](std::int64_t n) -> std::optional<std::int64_t> {
    return 64 * ((n + 31) / 32) * ((n + 31) / 32);
  };
  EXPECT_FALSE(fit_polynomial(224, 1, bytes, {}) && fit_polynomial(222, 1, bytes, {}));
  const auto found = fit_polynomial(225, 32, bytes, {1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at(225 + 32 * 50), bytes(225 + 32 * 50));
  EXPECT_FALSE(found->at(226)) << "not of its period, and no whole number there";
}

TEST(Growth, WhatOneMoreSizeContradictsIsNoLaw) {
  const auto bytes = [](std::int64_t n) -> std::optional<std::int64_t> {
    return n < 64 ? 10 * n : 640 + 3 * n;
  };
  EXPECT_TRUE(fit_polynomial(8, 1, bytes, {32}));
  EXPECT_FALSE(fit_polynomial(8, 1, bytes, {32, 128}));
}

TEST(Growth, SizesThatMustDivideAreFoundByDoubling) {
  const auto bytes = [](std::int64_t n) -> std::optional<std::int64_t> {
    if (512 % n != 0) return std::nullopt;
    return 100 + 16 * n;
  };
  EXPECT_FALSE(fit_polynomial(8, 1, bytes, {}));
  const auto found = fit_doubling(8, bytes, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at(256), 100 + 16 * 256);
}

// Rows dealt out to experts, beside other tensors: found for random numbers, and right elsewhere.
TEST(Growth, WhatIsDealtOutIsFoundBesideWhatIsNot) {
  Random random(22);
  for (int round = 0; round < 200; ++round) {
    const auto units = static_cast<std::int64_t>(20 + random.below(2000));
    const auto row = static_cast<std::int64_t>(1 + random.below(4096));
    const auto constant = static_cast<std::int64_t>(random.below(1'000'000));
    const auto slope = static_cast<std::int64_t>(random.below(10'000));
    const auto bytes = [&](std::int64_t n) -> std::optional<std::int64_t> {
      return constant + slope * n + row * n * ((units + n - 1) / n);
    };
    const auto found = fit_dealt_out(1, bytes, {10, 11, 12, 13, 14, 15, 16});
    ASSERT_TRUE(found) << "round " << round << ": " << units << " rows of " << row << " bytes";
    for (const std::int64_t n : {1, 3, 9, 14}) EXPECT_EQ(found->at(n), bytes(n)) << n;
  }
}

TEST(Growth, WhatDoesNotFitIsNoLawAndNoOverflow) {
  const auto bytes = [](std::int64_t n) -> std::optional<std::int64_t> {
    return n % 2 == 0 ? (std::int64_t{1} << 62) : -(std::int64_t{1} << 62);
  };
  EXPECT_FALSE(fit_polynomial(1'000'000'000, 1, bytes, {}));
  EXPECT_FALSE(Growth({{0, std::int64_t{1} << 62, 0, 1}, {}}).at(1'000'000));
}

}  // namespace
}  // namespace plimsoll::report
