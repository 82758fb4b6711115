// From an address to what lies there: a two-level table over granules of 64 KiB.
//
//   address  47      32 31     16 15      0
//           +----------+---------+---------+
//           |   root   |  leaf   |         |  root: 2^15 entries in .bss; leaf: 2^16 entries, 1 MiB
//           +----------+---------+---------+
//
// Nothing of ours is written beside the user's blocks: a page has no header, powers of two stay
// aligned, and an overrun cannot reach a descriptor. An entry is null where memory is not ours,
// which is how a foreign pointer is recognised. The root holds distances from an always-empty leaf,
// so that zero-initialised memory is a valid empty map and a lookup is two loads without a branch.
//
// An entry also names the pool that owns the page, which is all that free() asks about most blocks:
// one comparison tells an own block from another thread's, a large one, and one that is not ours,
// and does not wait for the descriptor.
//
// A granule is entered when it is part of a page of small blocks or of a segment of slices, or the
// first or last of a span (span_heap.h); inside spans entries are null.
//
// Threads: read without a lock, written under the lock of the span heap. An entry of a live block
// does not change, but for the owner: the thread that owns a page may hide that (pool.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "size_class.h"

namespace plimsoll::heap {

struct Pool;

enum class Kind : std::uint8_t { kPage, kSlices, kSpan, kFreeSpan };

// What every descriptor begins with. Only pages of small blocks have an owner.
struct Descriptor {
  std::atomic<Pool*> owner{nullptr};
  Kind kind = Kind::kPage;
};

class PageMap {
 public:
  static constexpr unsigned kAddressBits = 47;

  struct Entry {
    std::atomic<Pool*> owner;
    std::atomic<Descriptor*> descriptor;
  };

  // Whether it is an address that a program can have; others have no entry.
  static bool covers(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) >> 32 < kRootEntries;
  }
  const Entry& entry_of(const void* p) const {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    return leaf(address)[address >> 16 & 0xFFFF];
  }
  Descriptor* find(const void* p) const {
    return covers(p) ? entry_of(p).descriptor.load(std::memory_order_relaxed) : nullptr;
  }

  // Makes entries for a range possible; false when there is no memory for a leaf.
  bool prepare(const void* begin, std::size_t bytes);
  void set(const void* granule, Descriptor* to) {
    const auto address = reinterpret_cast<std::uintptr_t>(granule);
    Entry& entry = leaf(address)[address >> 16 & 0xFFFF];
    Pool* owner = to == nullptr ? nullptr : to->owner.load(std::memory_order_relaxed);
    entry.owner.store(owner, std::memory_order_relaxed);
    entry.descriptor.store(to, std::memory_order_relaxed);
  }
  void set_owner(const void* granule, Pool* owner) {
    const auto address = reinterpret_cast<std::uintptr_t>(granule);
    leaf(address)[address >> 16 & 0xFFFF].owner.store(owner, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kRootEntries = std::size_t{1} << (kAddressBits - 32);
  static constexpr std::size_t kLeafEntries = 1 << 16;

  Entry* leaf(std::uintptr_t address) const {
    std::uintptr_t at = reinterpret_cast<std::uintptr_t>(empty_) +
                        root_[address >> 32].load(std::memory_order_relaxed);
    asm("" : "+r"(at));  // one sum; compilers make two of it and the index
    return reinterpret_cast<Entry*>(at);
  }

  std::atomic<std::uintptr_t> root_[kRootEntries];  // bytes from empty_
  Entry empty_[kLeafEntries];                       // never written
};

extern constinit PageMap page_map;

}  // namespace plimsoll::heap
