// What happens when a stream's own free blocks do not do: joining, lending, growing, waiting.
#include <algorithm>

#include "plimsoll/base/check.h"
#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/caching_parts.h"

namespace plimsoll::memory {
namespace {

// A stream that borrows takes at least this much, so that its next small requests need no loan.
constexpr std::int64_t kLeastLoan = kPage;

// A size that is asked for again within so many allocations, some training steps, comes back.
constexpr std::int64_t kComesBackWithin = 16384;

}  // namespace

BlockIndex CachingAllocator::allocate_slowly(ArenaIndex arena, std::int64_t size) {
  ++statistics_.slow_allocations;
  came_back_ = recent_sizes_.came_back(size, statistics_.all.blocks.allocated, kComesBackWithin);
  poll_pending();
  BlockIndex id = search_all(arena, size);
  if (id != kNoBlock) return id;
  ++statistics_.retries;
  while (id == kNoBlock && wait_for_oldest_pending()) id = search_all(arena, size);
  if (id == kNoBlock && pressure_) {
    // The callback frees memory, and freeing takes the lock.
    const auto pressure = pressure_;
    lock_.unlock();
    const bool helped = pressure(Bytes(size));
    lock_.lock();
    if (helped) id = search_all(arena, size);
  }
  return id;
}

BlockIndex CachingAllocator::search_all(ArenaIndex arena, std::int64_t size) {
  const std::uint32_t pool = arenas_[arena]->pool;
  for (ArenaIndex other = 0; other < arenas_.size(); ++other) {
    if (arenas_[other]->pool == pool) join_kept(other);
  }
  BlockIndex id = take_fit(arena, size);
  if (id != kNoBlock) return id;
  const std::vector<Run> runs = free_runs(arena);
  id = borrow(arena, runs, size);
  if (id != kNoBlock) return id;
  return provider_.supports_mapping() ? grow(arena, runs, size) : grow_plain(arena, size);
}

bool CachingAllocator::is_behind(ArenaIndex borrower, const Block& block) const {
  if (block.arena == borrower) return true;
  const Arena& own = *arenas_[borrower];
  if (arenas_[block.arena]->stream == own.stream) return true;
  return block.arena < own.covered.size() && own.covered[block.arena] >= block.epoch;
}

void CachingAllocator::order_behind(ArenaIndex borrower, ArenaIndex lender) {
  Arena& to = *arenas_[borrower];
  Arena& from = *arenas_[lender];
  const OrderMark mark = order_.record(from.stream);
  order_.wait(to.stream, mark);
  order_.forget(mark);
  ++statistics_.stream_waits;
  notify(MemoryAction::kStreamWait, 0, 0, to.stream, from.stream);
  to.covered.resize(arenas_.size(), 0);
  to.covered[lender] = from.epoch;
  ++from.epoch;
  // What the lender was behind, the borrower is behind now.
  for (std::size_t other = 0; other < from.covered.size(); ++other) {
    to.covered[other] = std::max(to.covered[other], from.covered[other]);
  }
}

// The cheapest stretch of neighbouring free blocks that holds `size`: fewest lenders to wait for,
// then fewest bytes.
BlockIndex CachingAllocator::borrow(ArenaIndex arena, const std::vector<Run>& runs,
                                    std::int64_t size) {
  struct Stretch {
    BlockIndex first = kNoBlock;
    BlockIndex last = kNoBlock;
    std::int64_t size = 0;
    std::int64_t strangers = 0;
  };
  Stretch best;
  for (const Run& run : runs) {
    if (run.size < size) continue;
    Stretch now{run.first, run.first, 0, 0};
    for (BlockIndex id = run.first;; id = blocks_[id].after) {
      now.last = id;
      now.size += blocks_[id].size;
      now.strangers += is_behind(arena, blocks_[id]) ? 0 : 1;
      while (now.size - blocks_[now.first].size >= size) {
        now.size -= blocks_[now.first].size;
        now.strangers -= is_behind(arena, blocks_[now.first]) ? 0 : 1;
        now.first = blocks_[now.first].after;
      }
      const bool better = best.first == kNoBlock || now.strangers < best.strangers ||
                          (now.strangers == best.strangers && now.size < best.size);
      if (now.size >= size && better) best = now;
      if (id == run.last) break;
    }
  }
  if (best.first == kNoBlock) return kNoBlock;
  if (best.first == best.last) {
    // One block: its owner keeps what is not wanted.
    const std::int64_t loan = std::max(size, std::min(kLeastLoan, best.size));
    arenas_[blocks_[best.first].arena]->free.remove(blocks_, best.first);
    best.first = best.last = cut(best.first, loan);
    blocks_[best.first].state = BlockState::kFree;
    arenas_[blocks_[best.first].arena]->free.insert(blocks_, best.first);
  }
  adopt(arena, best.first, best.last);
  return take_fit(arena, size);
}

// Makes the free blocks first..last the arena's own, joined, ordered behind whoever freed them.
BlockIndex CachingAllocator::adopt(ArenaIndex arena, BlockIndex first, BlockIndex last) {
  BlockIndex id = first;
  while (true) {
    if (!is_behind(arena, blocks_[id])) order_behind(arena, blocks_[id].arena);
    arenas_[blocks_[id].arena]->free.remove(blocks_, id);
    blocks_[id].arena = arena;
    blocks_[id].epoch = arenas_[arena]->epoch;
    blocks_[id].state = BlockState::kKept;
    if (id == last) break;
    id = blocks_[id].after;
  }
  while (first != last) {
    if (blocks_[first].after == last) last = first;
    blocks_.join_after(first);
  }
  return join_and_insert(first);
}

// A stream reaches its marks in order: once it has not reached one, no later one is asked for. Each
// question is a call of the driver.
void CachingAllocator::poll_pending() {
  std::vector<StreamId> behind;
  const auto reached = [&](const std::pair<StreamId, OrderMark>& mark) {
    if (std::find(behind.begin(), behind.end(), mark.first) != behind.end()) return false;
    const bool there = order_.reached(mark.second);
    if (!there) behind.push_back(mark.first);
    return there;
  };
  for (std::size_t index = 0; index < pending_.size();) {
    PendingFree& waiting = pending_[index];
    while (!waiting.unmarked.empty() && order_.can_mark(waiting.unmarked.back())) {
      const StreamId stream = waiting.unmarked.back();
      waiting.marks.emplace_back(stream, order_.record(stream));
      waiting.unmarked.pop_back();
    }
    while (!waiting.marks.empty() && reached(waiting.marks.back())) {
      order_.forget(waiting.marks.back().second);
      waiting.marks.pop_back();
    }
    if (waiting.marks.empty() && waiting.unmarked.empty()) {
      finish_pending(index);
    } else {
      ++index;
    }
  }
}

void CachingAllocator::finish_pending(std::size_t index) {
  const BlockIndex id = pending_[index].block;
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  statistics_.pending_bytes.subtract(blocks_[id].size);
  blocks_[id].spilled ? free_spilled(id) : put_back(id);
}

bool CachingAllocator::wait_for_oldest_pending() {
  for (std::size_t index = 0; index < pending_.size(); ++index) {
    PendingFree& waiting = pending_[index];
    if (!waiting.unmarked.empty()) continue;
    for (const auto& [stream, mark] : waiting.marks) {
      order_.synchronize(mark);
      order_.forget(mark);
    }
    finish_pending(index);
    return true;
  }
  return false;
}

}  // namespace plimsoll::memory
