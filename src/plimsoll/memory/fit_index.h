// Free blocks by size: a two-level bitmap over lists, with best fit inside a list.
//
// Sizes in granules g are split into rows by their highest bit and each row into 32 columns, so a
// list holds sizes within 3 % of each other:
//
//   g < 32      row 0, column g                       one size per list
//   g = 1000    highest bit 9: row 5, column 1000 / 16 - 32 = 30      sizes 992 ... 1007
//
// find(size) looks at the list of its own size first, where a block may be too small, then at the
// next list that is not empty (two bit scans), where every block fits; in both it takes the best of
// the first 8. Plain two-level segregated fit takes the head of the second list only: faster by a
// few nanoseconds and looser by a percent or two of memory (research behind docs/allocator.md).
//
// Cost: constant. Threads: none, the owner locks.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "plimsoll/memory/block_table.h"

namespace plimsoll::memory {

class FitIndex {
 public:
  void insert(BlockTable& blocks, BlockIndex id) {
    const Place place = place_of(blocks[id].size >> kGranuleBits);
    BlockIndex& head = heads_[place.row][place.column];
    blocks[id].previous = kNoBlock;
    blocks[id].next = head;
    if (head != kNoBlock) blocks[head].previous = id;
    head = id;
    rows_ |= std::uint64_t{1} << place.row;
    columns_[place.row] |= 1u << place.column;
  }

  void remove(BlockTable& blocks, BlockIndex id) {
    const Block& block = blocks[id];
    if (block.next != kNoBlock) blocks[block.next].previous = block.previous;
    if (block.previous != kNoBlock) {
      blocks[block.previous].next = block.next;
      return;
    }
    const Place place = place_of(block.size >> kGranuleBits);
    heads_[place.row][place.column] = block.next;
    if (block.next != kNoBlock) return;
    columns_[place.row] &= ~(1u << place.column);
    if (columns_[place.row] == 0) rows_ &= ~(std::uint64_t{1} << place.row);
  }

  // The block that fits `size` (a multiple of the granule) best, or none. It stays in the index.
  BlockIndex find(const BlockTable& blocks, std::int64_t size) const {
    const Place own = place_of(size >> kGranuleBits);
    if ((columns_[own.row] >> own.column & 1u) != 0) {
      const BlockIndex fit = best_of(blocks, heads_[own.row][own.column], size);
      if (fit != kNoBlock) return fit;
    }
    unsigned row = own.row;
    std::uint32_t columns = own.column == 31 ? 0 : columns_[row] & (~0u << (own.column + 1));
    if (columns == 0) {
      const std::uint64_t rows = rows_ & (~std::uint64_t{0} << (row + 1));
      if (rows == 0) return kNoBlock;
      row = static_cast<unsigned>(std::countr_zero(rows));
      columns = columns_[row];
    }
    return best_of(blocks, heads_[row][static_cast<unsigned>(std::countr_zero(columns))], size);
  }

  // Calls visit(id) for every block of at least `size`'s list; visit must not change the index.
  template <typename Visit>
  void for_each(const BlockTable& blocks, Visit visit) const {
    for (std::uint64_t rows = rows_; rows != 0; rows &= rows - 1) {
      const auto row = static_cast<unsigned>(std::countr_zero(rows));
      for (std::uint32_t columns = columns_[row]; columns != 0; columns &= columns - 1) {
        BlockIndex id = heads_[row][static_cast<unsigned>(std::countr_zero(columns))];
        for (; id != kNoBlock; id = blocks[id].next) visit(id);
      }
    }
  }

  bool empty() const { return rows_ == 0; }

 private:
  static constexpr unsigned kRows = 44;  // 2^52 bytes and more than any device
  static constexpr unsigned kColumns = 32;
  static constexpr int kLook = 8;
  struct Place {
    unsigned row;
    unsigned column;
  };

  static Place place_of(std::int64_t granules) {
    const auto g = static_cast<std::uint64_t>(granules);
    if (g < kColumns) return {0, static_cast<unsigned>(g)};
    const auto high = static_cast<unsigned>(63 - std::countl_zero(g));
    return {high - 4, static_cast<unsigned>(g >> (high - 5)) - kColumns};
  }

  static BlockIndex best_of(const BlockTable& blocks, BlockIndex head, std::int64_t size) {
    BlockIndex best = kNoBlock;
    std::int64_t best_size = 0;
    int looked = 0;
    for (BlockIndex id = head; id != kNoBlock && looked < kLook; id = blocks[id].next, ++looked) {
      const std::int64_t have = blocks[id].size;
      if (have == size) return id;
      if (have > size && (best == kNoBlock || have < best_size)) {
        best = id;
        best_size = have;
      }
    }
    return best;
  }

  std::uint64_t rows_ = 0;
  std::array<std::uint32_t, kRows> columns_{};
  std::array<std::array<BlockIndex, kColumns>, kRows> heads_{};
};

}  // namespace plimsoll::memory
