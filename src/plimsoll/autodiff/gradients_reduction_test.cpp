#include <gtest/gtest.h>

#include "plimsoll/autodiff/testing/gradient_check.h"

namespace plimsoll::autodiff {
namespace {

TEST(ReductionGradients, AgreeWithFiniteDifferencesAndReadOnlyWhatTheySay) {
  for (const OperatorExample& example : reduction_examples()) {
    const Status status = check_gradient(example);
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
}

}  // namespace
}  // namespace plimsoll::autodiff
