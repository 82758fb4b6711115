#include "plimsoll/device/device.h"

#include <algorithm>
#include <cstring>

namespace plimsoll::device {

Status Device::read_between(void* /*queue*/, std::span<std::byte> to, const std::byte* from) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
  return {};
}

Result<int> check_commands(std::span<const Command> commands, DeviceNumber own) {
  int streams = 1;
  for (std::size_t c = 0; c < commands.size(); ++c) {
    const Command& command = commands[c];
    streams = std::max<int>(streams, command.stream + 1);
    if (command.kind == Command::Kind::kCopy || command.kind == Command::Kind::kFill) {
      PLIMSOLL_RETURN_IF_ERROR(check_copy(own, command.to, command.from, [&] {
        return fmt::format("command {}, a {} of {} bytes of '{}'", c,
                           command.kind == Command::Kind::kCopy ? "copy" : "fill", command.bytes,
                           command.tensor);
      }));
    }
    for (const std::uint32_t wait : command.waits) {
      if (wait >= c) return bad_input("command {} waits for {}, which comes later", c, wait);
    }
  }
  if (streams > kMostStreams)
    return bad_input("the plan has {} streams, at most {} are supported", streams, kMostStreams);
  return streams;
}

}  // namespace plimsoll::device
