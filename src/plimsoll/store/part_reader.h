// Parts of a file, read into memory of the caller: how weights get to where they are wanted.
//
// Copying out of a mapping takes a page fault for every few pages, reads a cold file a few pages at
// a time, and ends the program with SIGBUS when somebody cuts the file meanwhile. Reading does
// none of that, and how is chosen part by part:
//
//   cached    most of the part is in the page cache: pread, 4 MiB at a time, on up to four cores
//   direct    it is not, and the file system is local: O_DIRECT, 2 MiB blocks, twelve threads, of
//             which some copy or check what they read while others wait for the disk, so that it
//             always has work. Pages of a part whose memory has them at pages too are read to
//             their place, others through aligned buffers of 24 MiB in all. Many parts are one
//             queue of blocks: the disk does not wait at the end of each
//   network   NFS, SMB, FUSE and the like: pread, 4 MiB at a time, whatever is cached
//   mapped    cached, and its place in memory is one in which whole pages of the file can be laid
//             (file_pages.h): nothing is copied but the ends
//
// A file that has become shorter is an error that says so.
//
// Reading is const, and several threads may read at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/store/file_pages.h"

namespace plimsoll::store {

enum class ReadMethod { kCached, kDirect, kNetwork, kMapped };
std::string_view name(ReadMethod method);
std::optional<ReadMethod> parse_read_method(std::string_view name);

class PartReader {
 public:
  static Result<PartReader> open(const std::filesystem::path& path);
  PartReader(PartReader&& other) noexcept;
  PartReader& operator=(PartReader&& other) noexcept;
  ~PartReader();

  // `mapped` are the same bytes in a mapping of the file, by which it is seen what is cached where
  // the kernel does not say it of a file; `together` is how much is read with them at once, which
  // must be worth threads.
  ReadMethod method_for(std::uint64_t offset, std::span<const std::byte> mapped,
                        std::uint64_t together) const;
  // `staging`: where direct reads may put their blocks, instead of 24 MiB of their own. Where that
  // is less than 1 MiB, the part is read as if it were cached.
  using Staging = std::optional<std::span<std::byte>>;
  Status read(std::uint64_t offset, std::span<std::byte> out, ReadMethod method,
              const Staging& staging = std::nullopt) const;
  // Many parts. `done` is called with the number of each that is there, one call at a time, while
  // others are read; the first error ends the reading. Of a part in pieces, with the number of each
  // piece, so that work on a large part need not wait for its end, and then by several threads at
  // once.
  struct Part {
    std::uint64_t offset = 0;
    std::span<std::byte> out;
    std::size_t piece = 0;  // bytes; 0: the part is one
  };
  using Done = std::function<Status(std::size_t part, std::size_t piece)>;
  Status read_all(std::span<const Part> parts, ReadMethod method, const Done& done,
                  const Staging& staging = std::nullopt) const;
  // The part will be read soon, in small pieces.
  void expect(std::uint64_t offset, std::uint64_t bytes) const;
  // Pages of the file over `out`, and its ends read; null: they cannot be laid there, and nothing
  // was done.
  Result<std::unique_ptr<FilePages>> lay(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  PartReader() = default;
  Status read_cached(std::uint64_t offset, std::span<std::byte> out) const;

  std::filesystem::path path_;
  int cached_ = -1;
  int direct_ = -1;  // -1: the file system has none
  bool network_ = false;
};

}  // namespace plimsoll::store
