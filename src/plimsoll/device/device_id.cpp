#include "plimsoll/device/device_id.h"

#include <charconv>

namespace plimsoll::device {

std::string to_string(DeviceId id) {
  return id.kind == DeviceKind::kCpu ? "cpu" : fmt::format("cuda:{}", id.index);
}

Result<DeviceId> parse_device(std::string_view text) {
  if (text == "cpu") return DeviceId{};
  if (text == "cuda") return DeviceId{DeviceKind::kCuda, 0};
  if (text.starts_with("cuda:")) {
    DeviceId out{DeviceKind::kCuda, 0};
    const auto [rest, problem] =
        std::from_chars(text.data() + 5, text.data() + text.size(), out.index);
    if (problem == std::errc() && rest == text.data() + text.size() && out.index >= 0) return out;
  }
  return fail(ErrorCode::kUsage, "device '{}': expects cpu, cuda or cuda:N", text);
}

Status require_same_device(std::string_view operation, std::string_view tensor, DeviceId has,
                           DeviceId needs) {
  if (has == needs) return {};
  return fail(ErrorCode::kDevice,
              "{}: tensor '{}' is on {}, the operation runs on {}; copy it there first", operation,
              tensor, to_string(has), to_string(needs));
}

}  // namespace plimsoll::device
