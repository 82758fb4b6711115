#include "plimsoll/base/machine_memory.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(MachineMemory, RefusesMoreThanThereIs) {
  EXPECT_GT(machine_memory().value, 1 << 20);
  EXPECT_TRUE(check_machine_memory(machine_memory()));
  const Status refused = check_machine_memory(Bytes(machine_memory().value + 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDoesNotFit);
}

}  // namespace
}  // namespace plimsoll
