// Blocks of one size class that a thread freed and will soon hand out again, whoever owns them.
//
// Threads that exchange objects both ways free each other's blocks as fast as they allocate. To
// send every block home would cost each of them twice: the sender's addresses, and the owner's
// free list. Such a thread puts freed blocks of the class into a magazine instead, its own like
// the others', and when the class's list is empty the magazine becomes the list:
//
//   free ──► magazine ──► list of the class ──► malloc          (the blocks stay in the cache)
//               │ full: the older half
//               └──► to the page if it is an own block, else home in a parcel
//
// To their pages the blocks are outstanding, as if the program had them: nothing is counted when
// they come and go. A magazine holds addresses. A freed block is only asked for (prefetched) until
// its magazine becomes the list: the line may be in another core's cache, and waiting for it once
// with every free is what the exchange would cost otherwise.
//
// When. Exchange of a class begins when the thread freed another's block for at least every second
// of the last kWindow or more that it allocated, and ends when it was less than an eighth of the
// last kLongWindow. It begins late, because of threads that take over what others left
// (bench/malloc's server, stress): these free others' blocks for a while, or a few all the time.
// There magazines would make remote frees many: a block that wandered stays another's, and is freed
// the slow way for ever. It ends later, because the blocks of one owner come in long runs, as they
// were allocated. While it lasts, a magazine that gets full while a list that a page gave is used
// takes its place, and the rest of that list is used when the magazine is empty again; or magazines
// would fill up, and their blocks go home, while there are others to be handed out. (To take no
// more than a magazine from a page is the same, but finding where that ends waits for each block.)
//
// Cost: a random sequence of mallocs and frees rarely meets a full magazine; of the frees of
// bench/malloc's swaps, 3 % go home. Of the places, which are beside the pool, only those of
// classes that are exchanged are ever touched.
//
// Threads: a magazine is used by its pool's thread alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "size_class.h"

namespace plimsoll::heap {

struct Magazine {
  static constexpr unsigned kMost = 128;
  static constexpr std::size_t kBytes = 32 << 10;
  static constexpr std::uint32_t kWindow = 1024;           // blocks, to begin with it
  static constexpr std::uint32_t kLongWindow = 16 * 1024;  // to end it

  std::uint32_t allocated = 0;  // since it was decided last whether the class is exchanged
  std::uint32_t freed = 0;      // other threads' blocks, since then
  std::uint16_t count = 0;
  std::uint16_t room = 0;            // how many it may hold; 0 unless the class is exchanged
  std::uintptr_t* blocks = nullptr;  // kMost places; the newest is the last
  std::uintptr_t rest = 0;           // of a list that a page gave, when the magazine took its place
  bool page_gave_list = false;       // the class's list is one

  // The class's list, which was empty, got n blocks; those before them were allocated.
  // `most` is what the magazine may hold.
  void note_refill(std::uint32_t n, std::uint16_t most) {
    if (allocated >= (is_exchanged() ? kLongWindow : kWindow)) {
      room = freed >= allocated / (is_exchanged() ? 8 : 2) ? most : 0;
      allocated = freed = 0;
    }
    allocated += n;
  }
  bool is_exchanged() const { return room != 0; }
};

// Blocks of a class that its magazine holds when it is full; 0 where blocks are too large.
inline constexpr auto kMagazineBlocks = [] {
  std::array<std::uint16_t, kClasses> out;
  for (unsigned i = 0; i < kClasses; ++i) {
    const std::size_t blocks = Magazine::kBytes / block_bytes(i);
    out[i] =
        static_cast<std::uint16_t>(blocks < 2 ? 0 : std::min<std::size_t>(blocks, Magazine::kMost));
  }
  return out;
}();

}  // namespace plimsoll::heap
