// What lies where in device memory of which there is too little: blocks at offsets, and the room
// between them.
//
// Room for a block is one contiguous range. Where no hole is large enough, neighbours have to go,
// and which ones is a question of the range and not of single blocks: evicting the oldest block
// helps nobody if what lies beside it stays. So every run of neighbours that would make room is
// looked at, and the one whose dearest block is cheapest is chosen; of equals the one with the
// fewest bytes:
//
//   price    9   2  3   1    8        20 bytes are wanted
//          |aaaa|bb|ccc|d|..|eeee|     the runs are  a b (9)  b c d + hole (3)  d + hole + e (8)
//                ^^^^^^^^^^^
//
// The price is the policy's: how recently a block was used, how soon it is needed again. With
// one-byte blocks of one size this is exactly LRU, or Belady.
//
// Blocks that live long lie at the far end, the others at the front, so that small old blocks do
// not break up the room that large young ones need.
//
// Cost: linear in the blocks that are there. Pure bookkeeping; no memory is touched.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "plimsoll/base/units.h"

namespace plimsoll::runtime {

using BlockId = Id<struct BlockTag>;

class ResidentMap {
 public:
  // What evicting a block costs; kStays: it may not go.
  using Price = std::function<std::int64_t(BlockId)>;
  static constexpr std::int64_t kStays = std::numeric_limits<std::int64_t>::max();

  struct Room {
    Offset at;
    std::vector<BlockId> evicted;  // who lies there now
    std::int64_t price = 0;        // of the dearest of them
  };

  explicit ResidentMap(Bytes capacity) : capacity_(capacity) {}

  // The smallest hole that is large enough; or the far end of the last one.
  std::optional<Offset> hole(Bytes bytes, bool far_end) const;
  // The cheapest room, hole or not; none if every run holds a block that stays.
  std::optional<Room> room(Bytes bytes, bool far_end, const Price& price) const;

  // The cheapest block; none if all stay.
  std::optional<BlockId> cheapest(const Price& price) const;

  void place(BlockId block, Offset at, Bytes bytes);
  void remove(Offset at);

  Bytes capacity() const { return capacity_; }
  Bytes in_use() const { return in_use_; }
  Bytes peak() const { return peak_; }  // the most that was in use at once
  std::vector<BlockId> blocks() const;  // by offset

 private:
  struct Lying {
    std::int64_t at = 0;
    BlockId block;
    Bytes bytes;
    std::int64_t end() const { return at + bytes.value; }
  };
  std::vector<Lying>::const_iterator find(std::int64_t at) const;
  Bytes capacity_;
  Bytes in_use_;
  Bytes peak_;
  std::vector<Lying> blocks_;  // by offset: walked for every room, so they lie side by side
};

}  // namespace plimsoll::runtime
