// A file that values wait in while they are not in device memory.
//
// The space is taken from the file system when the file is made, so a disk that is too full is an
// error before the first step and not in the middle of one. The file has no name from then on:
// given a folder it never had one, given a path it is unlinked at once. Whatever ends the process,
// nothing is left behind.
//
//   PLIMSOLL_TRY(SwapFile file, SwapFile::make("/scratch", 4_GiB));
//   file.write(Offset(0), bytes);  file.read(Offset(0), bytes);     // from any thread
//
// Failures: kUsage for a path that exists or cannot be made, kDevice for a full file system
// and for reads and writes that fail.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::device {

class SwapFile {
 public:
  static Result<SwapFile> make(const std::filesystem::path& path, Bytes bytes);

  SwapFile() = default;
  SwapFile(SwapFile&& other) noexcept;
  SwapFile& operator=(SwapFile&& other) noexcept;
  ~SwapFile();

  Status write(Offset at, std::span<const std::byte> bytes) const;
  Status read(Offset at, std::span<std::byte> bytes) const;

 private:
  int file_ = -1;
};

}  // namespace plimsoll::device
