// Which device memory belongs to. A tensor knows its device; using it on another is an error that
// names both.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/result.h"

namespace plimsoll::device {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct DeviceId {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  bool operator==(const DeviceId&) const = default;
};

// "cpu", "cuda", "cuda:1"
std::string to_string(DeviceId id);
Result<DeviceId> parse_device(std::string_view text);

// An error that names the operation, the tensor and both devices when they differ.
Status require_same_device(std::string_view operation, std::string_view tensor, DeviceId has,
                           DeviceId needs);

}  // namespace plimsoll::device
