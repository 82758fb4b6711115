// Blocks that other threads freed, on their way back to the pool that owns their page.
//
// Moving a cache line from one core to another costs more than the rest of malloc and free
// together. So a thread that frees another's block does not touch the block: it writes the
// block's address into a parcel, eight to a line, and sends the parcel to the owner when it is
// full. A block that was handed over, used and freed stays in the cache of whoever used it last;
// the owner knows all addresses of a parcel at once and fetches what it has to.
//
//   freeing thread                             owner
//   1  takes a parcel of its own that is       4  list: takes all
//      at home, marks it as under way          5  reads the addresses of each parcel
//   2  writes addresses                        6  marks the parcel as at home
//   3  pushes it to the owner's list
//
// Parcels belong to the pool that sends them, a fixed number, so an owner that sleeps cannot make
// them pile up. When none is at home, a freed block carries the addresses of others: behind the
// next node and its mark (page.h), its words are addresses up to its end. So any number of blocks
// can be under way, without memory of their own. Parcels and such blocks are the nodes of the list.
//
//   RemoteList ──► parcel ──► block of 64 bytes ──► parcel
//                  62 blocks  itself and 6          5 blocks
//
// Invariants
// 1. A node that was pushed is read by the owner alone until the owner marks it as at home (a
//    parcel) or puts it on a free list (a block). Pushing releases and taking acquires what the
//    node says; marking as at home releases and asking whether it is acquires.
// 2. A block in a node counts as outstanding, so its page cannot be given to another owner.
// 3. Lists are taken whole, by exchange: there is no pop, hence no ABA.
//
// The atomics are a parameter: remote_list_test.cpp replaces them by ones that stop at every step,
// and tries all interleavings.
#pragma once

#include <atomic>
#include <cstdint>

namespace plimsoll::heap {

template <template <typename> class Atomic>
class RemoteList {
 public:
  // Puts nodes that are linked to each other in front. `link(next)` makes the last of them point
  // at what was there (0: nothing).
  template <typename Link>
  void push(std::uintptr_t first, Link link) {
    std::uintptr_t old = head_.load(std::memory_order_relaxed);
    do {
      link(old);
    } while (!head_.compare_exchange_weak(old, first, std::memory_order_release,
                                          std::memory_order_relaxed));
  }
  bool empty() const { return head_.load(std::memory_order_relaxed) == 0; }
  // The first node; the owner follows the links.
  std::uintptr_t take() { return head_.exchange(0, std::memory_order_acquire); }

 private:
  Atomic<std::uintptr_t> head_{0};
};

template <template <typename> class Atomic, unsigned kBlocks>
struct alignas(64) Parcel {
  static constexpr std::uint64_t kAtHome = 0;
  static constexpr std::uint64_t kUnderWay = 1;
  static constexpr unsigned kMost = kBlocks;

  Atomic<std::uint64_t> state{kAtHome};  // where a block has the next node
  std::uint64_t link = 0;                // the next node
  std::uintptr_t blocks[kBlocks];        // ends before its end with a 0

  // Whether the sender may fill it; then it counts as under way.
  bool take_out() {
    if (state.load(std::memory_order_acquire) != kAtHome) return false;
    state.store(kUnderWay, std::memory_order_relaxed);
    return true;
  }
  void give_back() { state.store(kAtHome, std::memory_order_release); }
};

}  // namespace plimsoll::heap
