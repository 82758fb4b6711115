// Between callers, who speak of bytes in host memory, and memory of a device.
//
// On a device that computes on the host the caller is handed the device's own memory and nothing is
// copied. On others he is handed pinned memory of the host's, taken once and grown when something
// larger comes, and what he wrote is copied behind him, or what he wants to read before him.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "plimsoll/device/device.h"

namespace plimsoll::runtime {

// Writes every byte it is handed.
using WriteBytes = std::function<Status(std::span<std::byte>)>;
using ReadBytes = std::function<Status(std::span<const std::byte>)>;

class Staging {
 public:
  explicit Staging(device::Device& device) : device_(device) {}

  Status write(std::byte* to, std::size_t bytes, const WriteBytes& content);
  Status read(const std::byte* from, std::size_t bytes, const ReadBytes& use);

 private:
  Result<std::span<std::byte>> room(std::size_t bytes);

  device::Device& device_;
  std::unique_ptr<device::Arena> pinned_;
};

}  // namespace plimsoll::runtime
