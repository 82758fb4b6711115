// Giving memory back to the device.
#include <algorithm>

#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/caching_parts.h"

namespace plimsoll::memory {

Bytes CachingAllocator::trim() {
  const std::lock_guard guard(lock_);
  while (wait_for_oldest_pending()) {
  }
  for (ArenaIndex arena = 0; arena < arenas_.size(); ++arena) join_kept(arena);
  settle();
  gather_settled();
  return provider_.supports_mapping() ? release_idle_mapped() : release_idle_plain();
}

// After settle() nobody has to wait for anybody: free blocks of all streams become the first arena's, so
// that a slab shared by several is seen as free.
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
  Bytes released{0};
  for (ArenaIndex arena = 0; arena < arenas_.size(); ++arena) {
    if (arenas_[arena]->pool != 0 || !order_.can_mark(arenas_[arena]->stream)) continue;
    std::vector<BlockIndex> idle;
    arenas_[arena]->free.for_each(blocks_, [&](BlockIndex id) {
      if (blocks_[id].size >= kPage) idle.push_back(id);
    });
    for (BlockIndex id : idle) {
      Address at = blocks_[id].address;
      const Address end = blocks_[id].end();
      while (at < end) {
        const SlabIndex index = pages_.slab(at);
        const Slab slab = slabs_[index];
        const Address slab_end = slab.at + static_cast<Address>(slab.size);
        if (slab.at >= at && slab_end <= end) {
          while (blocks_[id].end() <= slab.at) id = blocks_[id].after;
          id = cut_out(arena, id, {slab.at, slab_end});
          provider_.unmap(slab.at, Bytes(slab.size));
          provider_.release(slab.handle, Bytes(slab.size));
          addresses_.give(slab.at, slab.size);
          pages_.set_slab(slab.at, slab.size, kNoSlab);
          notify(MemoryAction::kSegmentUnmap, slab.at, slab.size, arenas_[arena]->stream);
          drop_slab(index);
          released += Bytes(slab.size);
        }
        at = slab_end;
      }
    }
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
      const SlabIndex slab = pages_.slab(blocks_[id].address);
      if (slabs_[slab].at == blocks_[id].address && slabs_[slab].size == blocks_[id].size) {
        idle.push_back(id);
      }
    });
    for (const BlockIndex id : idle) {
      const SlabIndex slab = pages_.slab(blocks_[id].address);
      arena->free.remove(blocks_, id);
      provider_.free_slab(slabs_[slab].at, Bytes(slabs_[slab].size));
      notify(MemoryAction::kSegmentFree, slabs_[slab].at, slabs_[slab].size, arena->stream);
      released += Bytes(slabs_[slab].size);
      drop_slab(slab);
      blocks_.drop(id);
    }
  }
  return released;
}

}  // namespace plimsoll::memory
