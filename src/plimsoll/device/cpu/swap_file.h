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
// Who swaps to a file has no host memory to spare, so what is large goes past the page cache
// (O_DIRECT), which would keep a second copy of it: the whole blocks of a value directly, through
// an aligned buffer of 1 MiB (one for writing, one for reading) where its address is not aligned,
// and what lies beside them at both ends through the cache. Where the file system knows no O_DIRECT
// (tmpfs) everything goes through the cache.
//
//   file      |  4096  |  4096  |  4096  |
//   value        ├╌╌╌╌╌┼────────┼╌╌╌┤            ╌ cached   ─ direct
//
// Two values that are there at once share no byte, but may share a block: neither writes it
// directly, because neither has all of it. A block that another value had cached before is written
// back and dropped by the kernel when it is written directly.
//
// Failures: kUsage for a path that exists or cannot be made, kDevice for a full file system
// and for reads and writes that fail.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::device {

class SwapFile {
 public:
  static Result<SwapFile> make(const std::filesystem::path& path, Bytes bytes);

  SwapFile();
  SwapFile(SwapFile&& other) noexcept;
  SwapFile& operator=(SwapFile&& other) noexcept;
  ~SwapFile();

  Status write(Offset at, std::span<const std::byte> bytes) const;
  Status read(Offset at, std::span<std::byte> bytes) const;

  // Whether large values go past the page cache.
  bool is_direct() const { return direct_ >= 0; }

 private:
  struct Bounce;

  int file_ = -1;
  int direct_ = -1;  // the same file, opened with O_DIRECT
  std::unique_ptr<Bounce> writing_;
  std::unique_ptr<Bounce> reading_;
};

}  // namespace plimsoll::device
