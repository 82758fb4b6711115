#include <gtest/gtest.h>

#include "plimsoll/autodiff/gradient_check.h"

namespace plimsoll::autodiff {
namespace {

TEST(ShapingGradients, AgreeWithFiniteDifferencesAndReadOnlyWhatTheySay) {
  for (const OperatorExample& example : shaping_examples()) {
    const Status status = check_gradient(example);
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
}

TEST(IndexingGradients, AgreeWithFiniteDifferencesAndReadOnlyWhatTheySay) {
  for (const OperatorExample& example : indexing_examples()) {
    const Status status = check_gradient(example);
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
}

TEST(IndexingGradients, RefuseAScatterThatMultiplies) {
  const OperatorExample example{"scatter_elements",
                                "mul",
                                {example_signed({3}, 0.5, 1.5, 1), example_integers({1}, {1}),
                                 example_signed({1}, 0.5, 1.5, 2)},
                                {{"reduction", std::string("mul")}},
                                true,
                                {}};
  const Status status = check_first_order(example);
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("'mul' has no gradient"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::autodiff
