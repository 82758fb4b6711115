// The records of blocks: plain structs in one vector, linked by 32-bit ids.
//
// A block is a piece of mapped address space, live or free. Neighbours in address order are linked
// through `before` and `after`; a chain ends where the mapping ends. A block that is free stands in
// one list of a FitIndex through `previous` and `next`. No headers lie in the
// memory itself: a device's memory cannot be read from the host, and records that stand together
// stay in the cache. Id 0 is no block.
//
// One record is one cache line. make() may move all of them: hold ids, not references, across it.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/base/units.h"

namespace plimsoll::memory {

using BlockIndex = std::uint32_t;
inline constexpr BlockIndex kNoBlock = 0;
inline constexpr int kGranuleBits = 9;
inline constexpr std::int64_t kGranule = std::int64_t{1} << kGranuleBits;

// Bytes in granules of 512, at least one.
constexpr std::int64_t granules_of(Bytes size) {
  const std::int64_t granules = (size.value + kGranule - 1) >> kGranuleBits;
  return granules > 0 ? granules : 1;
}

enum class BlockState : std::uint8_t {
  kNone,  // record not in use
  kFree,  // in a bin, joined with its neighbours
  kKept,  // the block its stream freed last, not joined
  kLive,
  kPending,  // freed by its owner, other streams have not passed yet
  kOnHost,   // freed, in host memory that a live neighbour still uses a part of
};

struct alignas(64) Block {
  std::uint64_t address = 0;
  std::int64_t size = 0;
  std::int64_t requested = 0;
  BlockIndex before = kNoBlock;
  BlockIndex after = kNoBlock;
  BlockIndex previous = kNoBlock;
  BlockIndex next = kNoBlock;
  std::uint32_t arena = 0;
  std::uint32_t epoch = 0;  // of its arena, when it was freed
  BlockState state = BlockState::kNone;
  bool shared = false;   // record_stream was called on it
  bool spilled = false;  // some of its slabs may be host memory

  std::uint64_t end() const { return address + static_cast<std::uint64_t>(size); }
  bool idle() const { return state == BlockState::kFree || state == BlockState::kKept; }
};

class BlockTable {
 public:
  BlockTable() : blocks_(1) {}

  BlockIndex make(std::uint64_t address, std::int64_t size) {
    BlockIndex id = spare_;
    if (id != kNoBlock) {
      spare_ = blocks_[id].next;
      blocks_[id] = Block{};
    } else {
      id = static_cast<BlockIndex>(blocks_.size());
      blocks_.emplace_back();
    }
    blocks_[id].address = address;
    blocks_[id].size = size;
    return id;
  }
  void drop(BlockIndex id) {
    blocks_[id].state = BlockState::kNone;
    blocks_[id].next = spare_;
    spare_ = id;
  }
  Block& operator[](BlockIndex id) { return blocks_[id]; }
  const Block& operator[](BlockIndex id) const { return blocks_[id]; }
  std::size_t size() const { return blocks_.size(); }

  // Cuts `size` bytes off the front: `id` keeps them, the rest becomes a new block behind it.
  BlockIndex split(BlockIndex id, std::int64_t size) {
    const BlockIndex rest =
        make(blocks_[id].address + static_cast<std::uint64_t>(size), blocks_[id].size - size);
    Block& front = blocks_[id];
    Block& back = blocks_[rest];
    back.before = id;
    back.after = front.after;
    back.arena = front.arena;
    back.epoch = front.epoch;
    if (front.after != kNoBlock) blocks_[front.after].before = rest;
    front.after = rest;
    front.size = size;
    return rest;
  }
  // Joins `id` with the block behind it, whose record is dropped.
  void join_after(BlockIndex id) {
    Block& front = blocks_[id];
    const BlockIndex gone = front.after;
    front.size += blocks_[gone].size;
    front.after = blocks_[gone].after;
    if (front.after != kNoBlock) blocks_[front.after].before = id;
    drop(gone);
  }

 private:
  std::vector<Block> blocks_;
  BlockIndex spare_ = kNoBlock;
};

}  // namespace plimsoll::memory
