// Giving memory back to the device.
#include <algorithm>

#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/caching_parts.h"

namespace plimsoll::memory {

Bytes CachingAllocator::trim() {
  const std::lock_guard guard(lock_);
  const Bytes released = trim_locked();
  for (const Slab& slab : spare_host_) provider_.release(slab.handle, Bytes(slab.size));
  spare_host_.clear();
  return released;
}

Bytes CachingAllocator::trim_locked() {
  while (wait_for_oldest_pending()) {
  }
  for (ArenaIndex arena = 0; arena < arenas_.size(); ++arena) join_kept(arena);
  settle();
  gather_settled();
  return provider_.supports_mapping() ? release_idle_mapped() : release_idle_plain();
}

// After settle() nobody has to wait for anybody: free blocks of all streams become the first
// arena's, so that a slab shared by several is seen as free.
void CachingAllocator::gather_settled() {
  for (ArenaIndex arena = 1; arena < arenas_.size(); ++arena) {
    if (arenas_[arena]->pool != 0 || !order_.can_mark(arenas_[arena]->stream)) continue;
    std::vector<BlockIndex> idle;
    arenas_[arena]->free.for_each(blocks_, [&](BlockIndex id) { idle.push_back(id); });
    for (const BlockIndex id : idle) {
      arenas_[arena]->free.remove(blocks_, id);
      blocks_[id].arena = 0;
      blocks_[id].epoch = arenas_[0]->epoch;
      join_and_insert(id);
    }
  }
}

// Waits until the device has passed every free, so that addresses may go away.
void CachingAllocator::settle() {
  for (const auto& arena : arenas_) {
    if (arena->free.empty() || !order_.can_mark(arena->stream)) continue;
    const OrderMark mark = order_.record(arena->stream);
    order_.synchronize(mark);
    order_.forget(mark);
  }
  unmap_retired(true);
}

Bytes CachingAllocator::release_idle_mapped() {
  const std::vector<Run> runs = free_runs(0);
  Survey found = survey(runs);
  for (const Retired& window : cut_pieces(0, runs, found.pieces)) {
    provider_.unmap(window.at, Bytes(window.size));
    addresses_.give(window.at, window.size);
  }
  Bytes released{0};
  for (const Survey::IdleSlab& idle : found.idle) {
    const Slab slab = slabs_[idle.slab];
    provider_.release(slab.handle, Bytes(slab.size));
    drop_slab(idle.slab);
    released += Bytes(slab.size);
  }
  return released;
}

// A slab without mapping goes back when one free block is all of it. The device's own free call
// waits for the work that used it.
Bytes CachingAllocator::release_idle_plain() {
  Bytes released{0};
  for (const auto& arena : arenas_) {
    if (arena->pool != 0) continue;
    std::vector<BlockIndex> idle;
    arena->free.for_each(blocks_, [&](BlockIndex id) {
      const Window& window = windows_[pages_.window(blocks_[id].address)];
      if (slabs_[window.slab].size == blocks_[id].size) idle.push_back(id);
    });
    for (const BlockIndex id : idle) {
      const Address at = blocks_[id].address;
      const std::int64_t size = blocks_[id].size;
      const WindowIndex window = pages_.window(at);
      const SlabIndex slab = windows_[window].slab;
      arena->free.remove(blocks_, id);
      blocks_.drop(id);
      close_window(window);
      drop_slab(slab);
      provider_.free_slab(at, Bytes(size));
      notify(MemoryAction::kSegmentFree, at, size, arena->stream);
      released += Bytes(size);
    }
  }
  return released;
}

}  // namespace plimsoll::memory
