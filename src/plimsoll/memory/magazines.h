// Exact-size caches in front of the FitIndex: last in, first out, one stack per size.
//
// A training step asks for the same few dozen sizes again and again, so the block that was freed last
// for a size is very likely wanted again, still warm. A hit costs no search, no split and no join. Up
// to 1 MiB a stack is found by the size itself; above, by a hash of the size into 256 stacks, where a
// stack belongs to one size as long as it is not empty.
//
// Cached blocks are not joined with their neighbours, so they must never be the reason to ask the
// device for more: the allocator takes everything out before it goes on from a miss.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "plimsoll/memory/block_table.h"

namespace plimsoll::memory {

class Magazines {
 public:
  BlockIndex pop(BlockTable& blocks, std::int64_t granules) {
    BlockIndex* top = nullptr;
    if (granules < kSmall) {
      top = &small_[static_cast<std::size_t>(granules)];
    } else {
      Large& large = large_[slot_of(granules)];
      if (large.granules != granules) return kNoBlock;
      top = &large.top;
    }
    const BlockIndex id = *top;
    if (id != kNoBlock) {
      *top = blocks[id].next;
      --count_;
    }
    return id;
  }

  // False when another size occupies the stack.
  bool push(BlockTable& blocks, BlockIndex id, std::int64_t granules) {
    BlockIndex* top = nullptr;
    if (granules < kSmall) {
      top = &small_[static_cast<std::size_t>(granules)];
      small_touched_[static_cast<std::size_t>(granules) / 64] |= std::uint64_t{1} << (granules % 64);
    } else {
      Large& large = large_[slot_of(granules)];
      if (large.granules != granules) {
        if (large.top != kNoBlock) return false;
        large.granules = granules;
      }
      top = &large.top;
    }
    blocks[id].next = *top;
    *top = id;
    ++count_;
    return true;
  }

  // Calls take(id) for every block and leaves the magazines empty.
  template <typename Take>
  void drain(BlockTable& blocks, Take take) {
    if (count_ == 0) return;
    for (std::size_t word = 0; word < small_touched_.size(); ++word) {
      for (std::uint64_t bits = small_touched_[word]; bits != 0; bits &= bits - 1) {
        empty(blocks, small_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))], take);
      }
      small_touched_[word] = 0;
    }
    for (Large& large : large_) empty(blocks, large.top, take);
    count_ = 0;
  }

  std::int64_t count() const { return count_; }

 private:
  static constexpr std::int64_t kSmall = 2048 + 1;
  static constexpr unsigned kLargeBits = 8;
  struct Large {
    std::int64_t granules = 0;
    BlockIndex top = kNoBlock;
  };

  static std::size_t slot_of(std::int64_t granules) {
    return (static_cast<std::uint64_t>(granules) * 0x9e3779b97f4a7c15ULL) >> (64 - kLargeBits);
  }

  template <typename Take>
  static void empty(BlockTable& blocks, BlockIndex& top, Take take) {
    while (top != kNoBlock) {
      const BlockIndex id = top;
      top = blocks[id].next;
      take(id);
    }
  }

  std::array<BlockIndex, kSmall> small_{};
  std::array<std::uint64_t, kSmall / 64 + 1> small_touched_{};
  std::array<Large, std::size_t{1} << kLargeBits> large_{};
  std::int64_t count_ = 0;
};

}  // namespace plimsoll::memory
