// The fast path, pools, and what is asked from outside. The ladder and growth have files of their
// own.
#include "plimsoll/memory/caching_allocator.h"

#include <algorithm>
#include <utility>

#include "plimsoll/base/check.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kSmallRequest = 1 << 20;
constexpr std::int64_t kLargestRequest = std::int64_t{1} << 46;

std::uint64_t whole_pages(Address begin, Address end) {
  const Address first = (begin + kPage - 1) >> kPageBits;
  const Address last = end >> kPageBits;
  return last > first ? last - first : 0;
}

}  // namespace

CachingAllocator::CachingAllocator(SlabProvider& provider, StreamOrder& order,
                                   CachingOptions options)
    : provider_(provider), order_(order), options_(options), pools_(1), slabs_(1), windows_(1) {
  moves_left_ = options_.free_moves;
  last_arena_ = make_arena(0, last_stream_);
}

CachingAllocator::~CachingAllocator() {
  for (const PendingFree& waiting : pending_) {
    for (const auto& [stream, mark] : waiting.marks) order_.forget(mark);
  }
  unmap_retired(true);
  const bool mapping = provider_.supports_mapping();
  for (const Window& window : windows_) {
    if (window.slab == kNoSlab) continue;
    const Bytes size(slabs_[window.slab].size);
    mapping ? provider_.unmap(window.at, size) : provider_.free_slab(window.at, size);
  }
  for (const Slab& slab : slabs_) {
    if (mapping && slab.size > 0) provider_.release(slab.handle, Bytes(slab.size));
  }
  for (const Slab& slab : spare_host_) provider_.release(slab.handle, Bytes(slab.size));
  if (reserved_size_.value > 0) provider_.unreserve(reserved_at_, reserved_size_);
}

CachingAllocator::ArenaIndex CachingAllocator::make_arena(std::uint32_t pool, StreamId stream) {
  const auto index = static_cast<ArenaIndex>(arenas_.size());
  arenas_.push_back(std::make_unique<Arena>());
  arenas_.back()->stream = stream;
  arenas_.back()->pool = pool;
  pools_[pool].arenas.emplace_back(stream, index);
  return index;
}

CachingAllocator::ArenaIndex CachingAllocator::arena_for(StreamId stream) {
  std::uint32_t pool = 0;
  if (!captures_.empty()) [[unlikely]] {
    const auto capture = std::find_if(captures_.begin(), captures_.end(),
                                      [&](const auto& entry) { return entry.second(stream); });
    if (capture != captures_.end()) pool = capture->first;
  }
  if (pool == 0 && stream == last_stream_) return last_arena_;
  const auto& arenas = pools_[pool].arenas;
  const auto found = std::find_if(arenas.begin(), arenas.end(),
                                  [&](const auto& entry) { return entry.first == stream; });
  const ArenaIndex index = found == arenas.end() ? make_arena(pool, stream) : found->second;
  if (pool == 0) {
    last_stream_ = stream;
    last_arena_ = index;
  }
  return index;
}

Address CachingAllocator::allocate(Bytes size, StreamId stream) {
  if (size.value < 0 || size.value > kLargestRequest) return 0;
  const std::int64_t granules = granules_of(size);
  const std::lock_guard guard(lock_);
  const ArenaIndex arena = arena_for(stream);
  const std::int64_t rounded = granules << kGranuleBits;
  BlockIndex id = arenas_[arena]->kept;
  if (blocks_[id].size == rounded) {
    arenas_[arena]->kept = kNoBlock;
  } else {
    if (id != kNoBlock) join_kept(arena);
    id = take_fit(arena, rounded);
    if (id == kNoBlock) id = allocate_slowly(arena, rounded);
    if (id == kNoBlock) [[unlikely]] {
      ++statistics_.out_of_memory;
      notify(MemoryAction::kOutOfMemory, 0, size.value, stream);
      return 0;
    }
  }
  hand_out(id, size.value);
  return blocks_[id].address;
}

void CachingAllocator::hand_out(BlockIndex id, std::int64_t requested) {
  Block& block = blocks_[id];
  pages_.record(block.address, id);
  block.state = BlockState::kLive;
  block.requested = requested;
  statistics_.all.add(block.size, requested);
  (block.size <= kSmallRequest ? statistics_.small : statistics_.large).add(block.size, requested);
  const std::uint32_t pool = arenas_[block.arena]->pool;
  if (pool != 0) [[unlikely]]
    ++pools_[pool].live;
  if (sink_ != nullptr) [[unlikely]] {
    notify(MemoryAction::kAllocate, block.address, requested, arenas_[block.arena]->stream);
  }
}

bool CachingAllocator::free(Address address) {
  const std::lock_guard guard(lock_);
  if (address % kGranule != 0) [[unlikely]]
    return false;
  const BlockIndex id = pages_.erase(address);
  if (id == kNoBlock) [[unlikely]]
    return false;
  Block& block = blocks_[id];
  statistics_.all.subtract(block.size, block.requested);
  (block.size <= kSmallRequest ? statistics_.small : statistics_.large)
      .subtract(block.size, block.requested);
  if (sink_ != nullptr) [[unlikely]] {
    notify(MemoryAction::kFree, address, block.requested, arenas_[block.arena]->stream);
  }
  if (block.shared || block.spilled) [[unlikely]] {
    free_later(id);
  } else {
    put_back(id);
  }
  return true;
}

void CachingAllocator::put_back(BlockIndex id) {
  Block& block = blocks_[id];
  Arena& arena = *arenas_[block.arena];
  if (sink_ != nullptr) [[unlikely]] {
    notify(MemoryAction::kFreeCompleted, block.address, block.requested, arena.stream);
  }
  block.epoch = arena.epoch;
  block.state = BlockState::kKept;
  const BlockIndex kept = std::exchange(arena.kept, id);
  if (kept != kNoBlock) join_and_insert(kept);
  if (arena.pool != 0) [[unlikely]] {
    Pool& pool = pools_[arena.pool];
    if (--pool.live == 0 && pool.released) dissolve(arena.pool);
  }
}

void CachingAllocator::free_later(BlockIndex id) {
  PendingFree waiting{id, {}, {}};
  if (blocks_[id].shared) {
    for (const StreamId stream : shared_with_[id]) {
      if (order_.can_mark(stream)) {
        waiting.marks.emplace_back(stream, order_.record(stream));
      } else {
        waiting.unmarked.push_back(stream);
      }
    }
    shared_with_.erase(id);
    blocks_[id].shared = false;
  }
  if (blocks_[id].spilled) {
    const StreamId own = arenas_[blocks_[id].arena]->stream;
    if (!order_.can_mark(own)) waiting.unmarked.push_back(own);
    if (waiting.marks.empty() && waiting.unmarked.empty()) return free_spilled(id);
  }
  blocks_[id].state = BlockState::kPending;
  statistics_.pending_bytes.add(blocks_[id].size);
  pending_.push_back(std::move(waiting));
}

BlockIndex CachingAllocator::take_fit(ArenaIndex arena, std::int64_t size) {
  FitIndex& free = arenas_[arena]->free;
  const BlockIndex id = free.find(blocks_, size);
  if (id == kNoBlock) return kNoBlock;
  free.remove(blocks_, id);
  return cut(id, size);
}

// Takes `size` bytes from a block that stands in no list; the rest goes back to its arena.
BlockIndex CachingAllocator::cut(BlockIndex id, std::int64_t size) {
  const Block& block = blocks_[id];
  if (block.size - size < kGranule) return id;
  const auto bytes = static_cast<Address>(size);
  const bool at_end = size >= kSmallRequest && whole_pages(block.address, block.end() - bytes) >
                                                   whole_pages(block.address + bytes, block.end());
  const BlockIndex back = blocks_.split(id, at_end ? block.size - size : size);
  const BlockIndex rest = at_end ? id : back;
  blocks_[rest].state = BlockState::kFree;
  arenas_[blocks_[rest].arena]->free.insert(blocks_, rest);
  return at_end ? back : id;
}

BlockIndex CachingAllocator::join_and_insert(BlockIndex id) {
  const std::uint32_t arena = blocks_[id].arena;
  FitIndex& free = arenas_[arena]->free;
  const auto can_join = [&](BlockIndex other) {
    return other != kNoBlock && blocks_[other].state == BlockState::kFree &&
           blocks_[other].arena == arena;
  };
  const BlockIndex after = blocks_[id].after;
  if (can_join(after)) {
    free.remove(blocks_, after);
    blocks_[id].epoch = std::max(blocks_[id].epoch, blocks_[after].epoch);
    blocks_.join_after(id);
  }
  const BlockIndex before = blocks_[id].before;
  if (can_join(before)) {
    free.remove(blocks_, before);
    blocks_[before].epoch = std::max(blocks_[id].epoch, blocks_[before].epoch);
    blocks_.join_after(before);
    id = before;
  }
  blocks_[id].state = BlockState::kFree;
  free.insert(blocks_, id);
  return id;
}

void CachingAllocator::join_kept(ArenaIndex arena) {
  const BlockIndex kept = std::exchange(arenas_[arena]->kept, kNoBlock);
  if (kept != kNoBlock) join_and_insert(kept);
}

bool CachingAllocator::record_stream(Address address, StreamId stream) {
  const std::lock_guard guard(lock_);
  const BlockIndex id = address % kGranule == 0 ? pages_.find(address) : kNoBlock;
  if (id == kNoBlock) return false;
  Block& block = blocks_[id];
  if (arenas_[block.arena]->stream == stream) return true;
  block.shared = true;
  std::vector<StreamId>& streams = shared_with_[id];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  return true;
}

void CachingAllocator::begin_pool(PoolId id, std::function<bool(StreamId)> belongs) {
  const std::lock_guard guard(lock_);
  auto found = std::find_if(pools_.begin() + 1, pools_.end(),
                            [&](const Pool& pool) { return pool.id == id && !pool.released; });
  if (found == pools_.end()) {
    pools_.emplace_back().id = id;
    found = pools_.end() - 1;
  }
  ++found->uses;
  captures_.emplace_back(static_cast<std::uint32_t>(found - pools_.begin()), std::move(belongs));
}

void CachingAllocator::end_pool(PoolId id) {
  const std::lock_guard guard(lock_);
  const auto found = std::find_if(captures_.begin(), captures_.end(), [&](const auto& capture) {
    return pools_[capture.first].id == id;
  });
  if (found != captures_.end()) captures_.erase(found);
}

void CachingAllocator::release_pool(PoolId id) {
  const std::lock_guard guard(lock_);
  for (std::uint32_t index = 1; index < pools_.size(); ++index) {
    Pool& pool = pools_[index];
    if (!(pool.id == id) || pool.released || --pool.uses > 0) continue;
    pool.released = true;
    if (pool.live == 0) dissolve(index);
  }
}

// The pool's arenas stay, as arenas of the default pool that nobody allocates from directly: their
// free blocks are found, like those of any other stream, when something is missing.
void CachingAllocator::dissolve(std::uint32_t pool) {
  for (const auto& [stream, arena] : pools_[pool].arenas) {
    join_kept(arena);
    arenas_[arena]->pool = 0;
  }
  pools_[pool].arenas.clear();
}

void CachingAllocator::set_limit(Bytes limit) {
  const std::lock_guard guard(lock_);
  options_.limit = limit;
}

void CachingAllocator::set_pressure_callback(std::function<bool(Bytes)> callback) {
  const std::lock_guard guard(lock_);
  pressure_ = std::move(callback);
}

void CachingAllocator::set_sink(EventSink* sink) {
  const std::lock_guard guard(lock_);
  sink_ = sink;
}

void CachingAllocator::notify(MemoryAction action, Address address, std::int64_t bytes,
                              StreamId stream, StreamId peer) {
  if (sink_ == nullptr) return;
  sink_->on_event({action, address, Bytes(bytes), stream, peer});
}

}  // namespace plimsoll::memory
