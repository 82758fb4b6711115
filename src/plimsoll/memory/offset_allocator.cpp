#include "plimsoll/memory/offset_allocator.h"

#include <algorithm>
#include <bit>

#include "plimsoll/base/check.h"

namespace plimsoll::memory {

std::optional<Offset> BumpAllocator::allocate(Bytes size) {
  const auto whole = rounded(size);
  if (!whole) return std::nullopt;
  const std::int64_t top = pieces_.empty() ? 0 : pieces_.back().offset + pieces_.back().size;
  if (top > capacity().value - *whole) return std::nullopt;
  pieces_.push_back({top, *whole, true});
  took(top, *whole);
  return Offset(top);
}

void BumpAllocator::free(Offset offset) {
  const auto found =
      std::lower_bound(pieces_.begin(), pieces_.end(), offset.value,
                       [](const Piece& piece, std::int64_t value) { return piece.offset < value; });
  PLIMSOLL_CHECK(found != pieces_.end() && found->offset == offset.value && found->live,
                 "bump: freed an offset that is not live");
  found->live = false;
  gave(found->size);
  while (!pieces_.empty() && !pieces_.back().live) pieces_.pop_back();
}

TlsfAllocator::TlsfAllocator(Bytes capacity) : OffsetCounts(capacity) {
  if (this->capacity().value == 0) return;
  const BlockIndex all = blocks_.make(0, this->capacity().value);
  blocks_[all].state = BlockState::kFree;
  free_.insert(blocks_, all);
}

std::optional<Offset> TlsfAllocator::allocate(Bytes size) {
  const auto whole = rounded(size);
  if (!whole) return std::nullopt;
  const BlockIndex id = free_.find(blocks_, *whole);
  if (id == kNoBlock) return std::nullopt;
  free_.remove(blocks_, id);
  if (blocks_[id].size > *whole) {
    const BlockIndex rest = blocks_.split(id, *whole);
    blocks_[rest].state = BlockState::kFree;
    free_.insert(blocks_, rest);
  }
  blocks_[id].state = BlockState::kLive;
  const auto offset = static_cast<std::int64_t>(blocks_[id].address);
  live_[offset] = id;
  took(offset, *whole);
  return Offset(offset);
}

void TlsfAllocator::free(Offset offset) {
  const auto found = live_.find(offset.value);
  PLIMSOLL_CHECK(found != live_.end(), "tlsf: freed an offset that is not live");
  BlockIndex id = found->second;
  live_.erase(found);
  gave(blocks_[id].size);
  const BlockIndex after = blocks_[id].after;
  if (after != kNoBlock && blocks_[after].state == BlockState::kFree) {
    free_.remove(blocks_, after);
    blocks_.join_after(id);
  }
  const BlockIndex before = blocks_[id].before;
  if (before != kNoBlock && blocks_[before].state == BlockState::kFree) {
    free_.remove(blocks_, before);
    blocks_.join_after(before);
    id = before;
  }
  blocks_[id].state = BlockState::kFree;
  free_.insert(blocks_, id);
}

BuddyAllocator::BuddyAllocator(Bytes capacity) : OffsetCounts(capacity), free_(kOrders) {
  // A range that is not a power of two is a row of powers of two, largest first.
  std::int64_t offset = 0;
  while (offset < this->capacity().value) {
    const auto left = static_cast<std::uint64_t>((this->capacity().value - offset) >> kGranuleBits);
    const int order = std::min(kOrders - 1, static_cast<int>(std::bit_width(left)) - 1);
    free_[static_cast<std::size_t>(order)].insert(offset);
    offset += kGranule << order;
  }
}

std::optional<Offset> BuddyAllocator::allocate(Bytes size) {
  const auto whole = rounded(size);
  if (!whole) return std::nullopt;
  const auto granules = static_cast<std::uint64_t>(*whole >> kGranuleBits);
  const auto order = static_cast<std::size_t>(std::bit_width(granules - 1));
  std::size_t found = order;
  while (found < free_.size() && free_[found].empty()) ++found;
  if (found >= free_.size()) return std::nullopt;
  const std::int64_t offset = *free_[found].begin();
  free_[found].erase(free_[found].begin());
  while (found > order) {
    --found;
    free_[found].insert(offset + (kGranule << found));
  }
  live_[offset] = static_cast<int>(order);
  took(offset, kGranule << order);
  return Offset(offset);
}

void BuddyAllocator::free(Offset offset) {
  const auto found = live_.find(offset.value);
  PLIMSOLL_CHECK(found != live_.end(), "buddy: freed an offset that is not live");
  auto order = static_cast<std::size_t>(found->second);
  std::int64_t at = offset.value;
  live_.erase(found);
  gave(kGranule << order);
  while (order + 1 < free_.size()) {
    const auto buddy = free_[order].find(at ^ (kGranule << order));
    if (buddy == free_[order].end()) break;
    at = std::min(at, *buddy);
    free_[order].erase(buddy);
    ++order;
  }
  free_[order].insert(at);
}

BestFitAllocator::BestFitAllocator(Bytes capacity) : OffsetCounts(capacity) {
  if (this->capacity().value > 0) add_free(0, this->capacity().value);
}

void BestFitAllocator::add_free(std::int64_t offset, std::int64_t size) {
  by_offset_[offset] = size;
  by_size_.emplace(size, offset);
}

void BestFitAllocator::drop_free(std::map<std::int64_t, std::int64_t>::iterator at) {
  by_size_.erase({at->second, at->first});
  by_offset_.erase(at);
}

std::optional<Offset> BestFitAllocator::allocate(Bytes size) {
  const auto whole = rounded(size);
  if (!whole) return std::nullopt;
  const auto fit = by_size_.lower_bound({*whole, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [have, offset] = *fit;
  drop_free(by_offset_.find(offset));
  if (have > *whole) add_free(offset + *whole, have - *whole);
  live_[offset] = *whole;
  took(offset, *whole);
  return Offset(offset);
}

void BestFitAllocator::free(Offset given) {
  const auto found = live_.find(given.value);
  PLIMSOLL_CHECK(found != live_.end(), "best fit: freed an offset that is not live");
  std::int64_t offset = given.value;
  std::int64_t size = found->second;
  live_.erase(found);
  gave(size);
  auto after = by_offset_.lower_bound(offset);
  if (after != by_offset_.end() && after->first == offset + size) {
    size += after->second;
    drop_free(after);
  }
  after = by_offset_.lower_bound(offset);
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      drop_free(before);
    }
  }
  add_free(offset, size);
}

}  // namespace plimsoll::memory
