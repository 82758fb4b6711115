// Blocks that other threads freed, on their way back to the page they belong to.
//
// Two lists, both written by many threads and emptied by one:
//
//   a page's RemoteList    blocks of that page, pushed as whole chains
//   an owner's PendingStack  pages whose RemoteList is not empty
//
// A thread that frees a block of somebody else's page first collects a chain of blocks of the same
// page (pool.h). Pushing the chain is one compare-and-swap on the page; only the push that finds
// the page's list empty also puts the page on its owner's stack. So the owner learns in one
// exchange which pages to look at, and never scans.
//
//   freeing thread                           owner
//   1  page.remote: push chain               3  stack: take all
//   2  was it empty? owner.pending: push     4  for each page: read its link, then take page.remote
//
// Invariants
// 1. A page with a non-empty list is on the stack or about to be pushed by exactly one thread (the
//    one of 1).
// 2. The owner takes a page's list only after it took the page off the stack. Hence between 1 and 2
//    the page cannot be emptied, found wholly free and given to another owner: its blocks in the
//    list still count as outstanding.
// 3. The link between pages is read before the page's list is taken; from then on another thread
//    may push the page again. Hence taking releases and pushing acquires: without that the link
//    could be read after it was written anew (on x86 both are the same instruction).
// 4. Lists are taken whole, by exchange: there is no pop, hence no ABA.
//
// The number of blocks rides in the upper 16 bits of the list's word, above 48 bits of address, so
// that the owner knows how many came home without walking first. The atomics are a parameter:
// remote_list_test.cpp replaces them by ones that stop at every step, and tries all interleavings.
#pragma once

#include <atomic>
#include <cstdint>

namespace plimsoll::heap {

struct Chain {
  std::uintptr_t head = 0;
  unsigned count = 0;
};

template <template <typename> class Atomic>
class RemoteList {
 public:
  // `link(next)` makes the chain's last block point at what was there (0: nothing). True when the
  // list was empty.
  template <typename Link>
  bool push(Chain chain, Link link) {
    std::uint64_t old = word_.load(std::memory_order_relaxed);
    std::uint64_t fresh;
    do {
      const Chain there = unpack(old);
      link(there.head);
      fresh = pack({chain.head, chain.count + there.count});
    } while (!word_.compare_exchange_weak(old, fresh, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    return old == 0;
  }
  Chain take() { return unpack(word_.exchange(0, std::memory_order_acq_rel)); }

 private:
  static constexpr unsigned kAddressBits = 48;
  static std::uint64_t pack(Chain chain) {
    return chain.head | std::uint64_t{chain.count} << kAddressBits;
  }
  static Chain unpack(std::uint64_t word) {
    return {word & ((std::uint64_t{1} << kAddressBits) - 1),
            static_cast<unsigned>(word >> kAddressBits)};
  }
  Atomic<std::uint64_t> word_{0};
};

// Page has a member `Page* next_pending`.
template <typename Page, template <typename> class Atomic>
class PendingStack {
 public:
  void push(Page* page) {
    Page* old = head_.load(std::memory_order_relaxed);
    do {
      page->next_pending = old;
    } while (!head_.compare_exchange_weak(old, page, std::memory_order_release,
                                          std::memory_order_relaxed));
  }
  bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }
  // Calls `visit(page)` for every page, having read the page's link before.
  template <typename Visit>
  void take(Visit visit) {
    Page* page = head_.exchange(nullptr, std::memory_order_acquire);
    while (page != nullptr) {
      Page* next = page->next_pending;
      visit(page);
      page = next;
    }
  }

 private:
  Atomic<Page*> head_{nullptr};
};

}  // namespace plimsoll::heap
