#include "plimsoll/device/device_id.h"

#include <gtest/gtest.h>

namespace plimsoll::device {
namespace {

TEST(DeviceId, ReadsBackWhatItPrints) {
  for (const char* text : {"cpu", "cuda:0", "cuda:7"})
    EXPECT_EQ(to_string(*parse_device(text)), text);
  EXPECT_EQ(*parse_device("cuda"), (DeviceId{DeviceKind::kCuda, 0}));
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x"})
    EXPECT_FALSE(parse_device(text)) << text;
}

TEST(DeviceId, MismatchNamesBothDevices) {
  const Status status = require_same_device("matmul", "fc.weight", {DeviceKind::kCuda, 1}, {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDevice);
  EXPECT_NE(status.error().message.find("cuda:1"), std::string::npos);
  EXPECT_NE(status.error().message.find("cpu"), std::string::npos);
  EXPECT_TRUE(require_same_device("matmul", "x", {}, {}));
}

}  // namespace
}  // namespace plimsoll::device
