#include <gtest/gtest.h>

#include "plimsoll/autodiff/gradient_check.h"

namespace plimsoll::autodiff {
namespace {

TEST(NnGradients, AgreeWithFiniteDifferencesAndReadOnlyWhatTheySay) {
  for (const OperatorExample& example : nn_examples()) {
    const Status status = check_gradient(example);
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
}

}  // namespace
}  // namespace plimsoll::autodiff
