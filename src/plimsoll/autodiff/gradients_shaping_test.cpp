#include <gtest/gtest.h>

#include "plimsoll/autodiff/testing/gradient_check.h"

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

}  // namespace
}  // namespace plimsoll::autodiff
