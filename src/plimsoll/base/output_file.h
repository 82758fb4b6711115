// Output files: the one place through which the program writes what a user has named.
//
//   what the name is      what happens
//   nothing yet           a file with the mode that the umask leaves of 0666
//   a regular file        replaced whole; mode and, where we may give files away, owner stay. One
//                         that we may not
//                         write is refused, although its folder would let us replace it
//   a symbolic link       stays a link; what it leads to is made or replaced. In a folder where
//                         everybody may write
//                         (/tmp) a stranger's link is refused, as the kernel refuses to open one
//   /dev/stdout, /dev/fd/3, a FIFO, a device
//                         written through, as the bytes come: there is nothing to rename
//   a folder, a socket    refused
//
// A regular file is written under a temporary name in its own folder, synced, renamed, and the
// folder synced: readers see the old file or the whole new one, also after a power failure. A
// failure, a value that goes without commit(), or a signal that ends the process (temporary_name.h)
// leaves the old file and nothing else. Hard links to the old file keep the old content.
//
// Several files that belong together. There is no system call that renames two files at once, so
// commit_together() does what is possible:
//   1. all files are written and synced under temporary names: no room, no permission, a signal:
//      nothing has changed;
//   2. the old last file, the index by which readers find the others, is set aside; the new files
//      get their names, the
//      index as the last of them. A rename that fails is undone together with those before it, and
//      signals wait. Only
//      SIGKILL or a power failure between two of these renames leaves a part: then there is no
//      index, so nobody takes
//      a mixture of old and new files for a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/base/temporary_name.h"

namespace plimsoll {

class OutputFile {
 public:
  // A FIFO waits here for its reader, as every program does.
  static Result<OutputFile> create(const std::filesystem::path& path);

  OutputFile() = default;
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();  // without commit(): as if it had never been

  Status write(std::string_view bytes);
  Status write(std::span<const std::byte> bytes);
  std::uint64_t bytes_written() const { return written_; }
  // No more bytes come: synced and closed, so that a set may have more files than a process
  // descriptors.
  Status finish();
  Status commit();

 private:
  friend Status commit_together(std::span<OutputFile> files);
  Status give_name();
  tl::unexpected<Error> failure(int error) const;

  std::filesystem::path asked_;   // as the user wrote it
  std::filesystem::path target_;  // where the links lead; empty where the bytes are written through
  TemporaryName temporary_;
  int descriptor_ = -1;
  std::uint64_t written_ = 0;
};

// All or none, the last one as their index; see above.
Status commit_together(std::span<OutputFile> files);

Status write_file(const std::filesystem::path& path, std::string_view content);

// What can be told before the work: whether the name can be written, and whether its file system
// has room for `bytes`. Nothing is left behind, and a FIFO is not opened.
Status check_writable(const std::filesystem::path& path, std::uint64_t bytes = 0);

}  // namespace plimsoll
