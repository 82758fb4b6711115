#include "plimsoll/trace/pytorch_model.h"

#include <algorithm>
#include <bit>

#include "plimsoll/base/checked.h"

namespace plimsoll::trace {
namespace {

constexpr std::int64_t kLeast = 512;
constexpr std::int64_t kSmall = 1 << 20;
constexpr std::int64_t kSmallSegment = 2 << 20;
constexpr std::int64_t kLargeSegment = 20 << 20;
constexpr std::int64_t kLargeFrom = 10 << 20;
constexpr std::int64_t kAddressRange = std::int64_t{1} << 44;

std::int64_t segment_size(std::int64_t size) {
  if (size <= kSmall) return kSmallSegment;
  if (size < kLargeFrom) return kLargeSegment;
  return round_up(size, kSmallSegment);
}

}  // namespace

PytorchModel::PytorchModel(const PytorchPolicy& policy, const Trace& trace) : policy_(policy) {
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kSegmentAlloc) {
      recorded_[event.bytes.value].push_back(event.address);
    }
  }
  for (const InitialSegment& segment : trace.initial) {
    if (policy_.expandable) {
      for (const LiveBlock& block : segment.blocks) {
        initial_[block.address] = static_cast<Index>(allocate(block.bytes, segment.stream));
      }
    } else {
      seed(segment);
    }
  }
}

std::int64_t PytorchModel::rounded(std::int64_t bytes) const {
  if (bytes < kLeast) return kLeast;
  const int divisions = policy_.roundup_divisions;
  if (divisions > 1 && bytes > kLeast * divisions) {
    const auto size = static_cast<std::uint64_t>(bytes);
    if (std::has_single_bit(size)) return bytes;
    const auto step = static_cast<std::int64_t>(std::bit_floor(size)) / divisions;
    return round_up(bytes, step);
  }
  return round_up(bytes, kLeast);
}

PytorchModel::Index PytorchModel::make(const Block& block) {
  blocks_.push_back(block);
  return static_cast<Index>(blocks_.size() - 1);
}

void PytorchModel::insert(Index id) {
  const Block& block = blocks_[id];
  pools_[block.small].insert({block.stream, block.size, block.address, id});
}

void PytorchModel::erase(Index id) {
  const Block& block = blocks_[id];
  pools_[block.small].erase({block.stream, block.size, block.address, id});
}

bool PytorchModel::reserve(std::int64_t size) {
  if (reserved_ + size > policy_.capacity.value) return false;
  reserved_ += size;
  peak_ = std::max(peak_, reserved_);
  ++device_allocations_;
  return true;
}

// How far a free block at the tail of a growing range could reach.
std::int64_t PytorchModel::reach(Index id) const {
  const Block& block = blocks_[id];
  if (block.after == 0 || blocks_[block.after].mapped) return block.size;
  return block.size + blocks_[block.after].size;
}

PytorchModel::Index PytorchModel::find(std::int64_t size, std::uint64_t stream, bool small) {
  Pool& pool = pools_[small];
  auto found = pool.lower_bound({stream, size, 0, 0});
  if (found == pool.end() || found->stream != stream) return 0;
  if (policy_.expandable) {
    for (auto next = std::next(found); next != pool.end() && next->stream == stream &&
                                       reach(next->block) < reach(found->block);) {
      found = next++;
    }
  }
  const Index id = found->block;
  pool.erase(found);
  return id;
}

PytorchModel::Index PytorchModel::take_segment(std::int64_t size, std::uint64_t stream,
                                               bool small) {
  const std::int64_t whole = segment_size(size);
  if (!reserve(whole)) return 0;
  std::uint64_t address = next_address_;
  const auto known = recorded_.find(whole);
  if (known != recorded_.end() && !known->second.empty()) {
    address = known->second.front();
    known->second.pop_front();
  } else {
    next_address_ += static_cast<std::uint64_t>(whole);
  }
  return make({address, whole, stream, 0, 0, small, false, true});
}

PytorchModel::Index PytorchModel::tail_of(std::uint64_t stream, bool small) {
  Index& tail = tails_[{stream, small}];
  if (tail == 0) {
    tail = make({next_address_, kAddressRange, stream, 0, 0, small, false, false});
    next_address_ += static_cast<std::uint64_t>(kAddressRange);
  }
  return tail;
}

PytorchModel::Index PytorchModel::extend(std::int64_t size, std::uint64_t stream, bool small) {
  const Index tail = tail_of(stream, small);
  const Index last = blocks_[tail].before;
  const bool joins = last != 0 && !blocks_[last].live;
  const std::int64_t have = joins ? blocks_[last].size : 0;
  const std::int64_t grown = round_up(size - have, small ? kSmallSegment : kLargeSegment);
  if (!reserve(grown)) return 0;
  const std::uint64_t address = blocks_[tail].address;
  blocks_[tail].address += static_cast<std::uint64_t>(grown);
  blocks_[tail].size -= grown;
  if (joins) {
    erase(last);
    blocks_[last].size += grown;
    return last;
  }
  const Index id = make({address, grown, stream, last, tail, small, false, true});
  blocks_[tail].before = id;
  if (last != 0) blocks_[last].after = id;
  return id;
}

void PytorchModel::split(Index id, std::int64_t size) {
  const Block whole = blocks_[id];
  const Index rest = make({whole.address + static_cast<std::uint64_t>(size), whole.size - size,
                           whole.stream, id, whole.after, whole.small, false, true});
  if (whole.after != 0) blocks_[whole.after].before = rest;
  blocks_[id].after = rest;
  blocks_[id].size = size;
  insert(rest);
}

std::uint64_t PytorchModel::allocate(Bytes bytes, StreamId stream) {
  const std::int64_t size = rounded(bytes.value);
  const bool small = size <= kSmall;
  Index id = find(size, stream.value, small);
  if (id == 0) {
    id = policy_.expandable ? extend(size, stream.value, small)
                            : take_segment(size, stream.value, small);
  }
  if (id == 0) return 0;
  const std::int64_t rest = blocks_[id].size - size;
  if (small || policy_.expandable ? rest >= kLeast : rest > kSmall) split(id, size);
  blocks_[id].live = true;
  return id;
}

void PytorchModel::join(Index into, Index gone) {
  Block& block = blocks_[into];
  const Block& other = blocks_[gone];
  if (other.address < block.address) {
    block.address = other.address;
    block.before = other.before;
    if (block.before != 0) blocks_[block.before].after = into;
  } else {
    block.after = other.after;
    if (block.after != 0) blocks_[block.after].before = into;
  }
  block.size += other.size;
}

void PytorchModel::free(std::uint64_t name) {
  const auto id = static_cast<Index>(name);
  blocks_[id].live = false;
  for (const Index other : {blocks_[id].before, blocks_[id].after}) {
    if (other == 0 || blocks_[other].live || !blocks_[other].mapped) continue;
    erase(other);
    join(id, other);
  }
  insert(id);
}

std::uint64_t PytorchModel::initial_block(std::uint64_t address) const {
  const auto found = initial_.find(address);
  return found == initial_.end() ? 0 : found->second;
}

void PytorchModel::seed(const InitialSegment& segment) {
  reserved_ += segment.size.value;
  peak_ = std::max(peak_, reserved_);
  const Index whole = make({segment.address, segment.size.value, segment.stream.value, 0, 0,
                            segment.small, false, true});
  insert(whole);
  Index at = whole;
  for (std::size_t which = 0; which < segment.blocks.size(); ++which) {
    const LiveBlock& live = segment.blocks[which];
    if (live.address > blocks_[at].address) {
      erase(at);
      split(at, static_cast<std::int64_t>(live.address - blocks_[at].address));
      insert(at);
      at = blocks_[at].after;
    }
    const std::uint64_t limit =
        which + 1 < segment.blocks.size()
            ? segment.blocks[which + 1].address
            : segment.address + static_cast<std::uint64_t>(segment.size.value);
    const auto room = static_cast<std::int64_t>(limit - live.address);
    std::int64_t size = live.size.value > 0 ? live.size.value : rounded(live.bytes.value);
    // The size of a block that was freed later is not recorded: a rest that would not have been
    // split off belongs to it.
    if (live.size.value == 0 && !segment.small && room - size <= kSmall) size = room;
    erase(at);
    if (size < blocks_[at].size) split(at, size);
    blocks_[at].live = true;
    initial_[live.address] = at;
    if (blocks_[at].after == 0) break;
    at = blocks_[at].after;
  }
}

}  // namespace plimsoll::trace
