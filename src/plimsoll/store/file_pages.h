// Pages of a file laid over memory of the caller: what the file holds is there without a copy, and
// stands in memory once, as the page cache has it.
//
//   memory  |....|file page|file page|file page|....|     the ends, less than a page each, are
//                                                         for the caller to read
//
// For whoever only reads: writing faults. The memory must be private anonymous memory of this
// process and is that again, zero, when this is gone; so this must go before the memory does.
//
// A file that somebody cuts shorter meanwhile would end the program with SIGBUS, in whatever thread
// reads first. Here such a page becomes zero, and was_cut() says so from then on: ask it before
// results are believed.
//
// Threads: any may read the memory; the handler of SIGBUS takes no locks. Faults elsewhere go to
// whoever handled SIGBUS before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "plimsoll/base/result.h"

namespace plimsoll::store {

class FilePages {
 public:
  // Lays the whole pages of [offset, offset + memory.size()) over `memory`; null where places in
  // the file and in memory do not agree within a page, or no page is whole.
  static Result<std::unique_ptr<FilePages>> lay(int descriptor, std::uint64_t offset,
                                                std::span<std::byte> memory);
  FilePages(const FilePages&) = delete;
  FilePages& operator=(const FilePages&) = delete;
  ~FilePages();

  std::span<std::byte> pages() const { return pages_; }
  bool was_cut() const;

 private:
  FilePages(std::span<std::byte> pages, std::size_t slot) : pages_(pages), slot_(slot) {}
  std::span<std::byte> pages_;
  std::size_t slot_;
};

}  // namespace plimsoll::store
