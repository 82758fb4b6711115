// Mapping: slabs that lie free are moved to where they are needed, and only the rest is created.
#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "plimsoll/base/check.h"
#include "plimsoll/base/checked.h"
#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/caching_parts.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kLeastAddressSpace = std::int64_t{1} << 40;
constexpr std::int64_t kSlabsPerRequest = 8;
constexpr std::int64_t kSlabsHeld = 1024;
constexpr std::int64_t kAllocationsPerMove = 4096;

}  // namespace

BlockIndex CachingAllocator::grow(ArenaIndex arena, const std::vector<Run>& runs,
                                  std::int64_t size) {
  if (reserved_size_.value == 0 && !reserve_once()) return kNoBlock;
  const bool movable = arenas_[arena]->pool == 0;
  GrowthPlan plan = plan_growth(arena, runs, size, movable && may_move());
  if (!create_missing(plan)) {
    if (!movable) return kNoBlock;
    plan = plan_growth(arena, runs, size, true);
    if (!create_missing(plan)) return kNoBlock;
  }
  if (!reserve_addresses(plan) || !map_planned(plan)) return kNoBlock;
  detach_moved(arena, runs, plan);
  attach(arena, plan);
  unmap_retired(false);
  return take_fit(arena, size);
}

bool CachingAllocator::reserve_once() {
  Bytes want = options_.address_space;
  if (want.value == 0) {
    want = Bytes(std::max(kLeastAddressSpace, round_up(provider_.capacity().value, kPage) * 16));
  }
  const auto at = provider_.reserve(want);
  if (!at) return false;
  reserved_at_ = *at;
  reserved_size_ = want;
  addresses_.give(*at, want.value);
  return true;
}

// Moving a slab costs tens of microseconds, and growing instead costs memory for good. A size that comes
// back belongs to a program that repeats itself, and for that growing has no end to pay for: it may
// always move. Other sizes draw on an allowance that refills by one for every 4096 allocations; when it
// is used up they get new memory, as long as the device has any.
bool CachingAllocator::may_move() {
  const std::int64_t earned = statistics_.all.blocks.allocated / kAllocationsPerMove;
  moves_left_ = std::min(options_.free_moves, moves_left_ + earned - moves_earned_);
  moves_earned_ = earned;
  return came_back_ || moves_left_ > 0;
}

CachingAllocator::GrowthPlan CachingAllocator::plan_growth(ArenaIndex arena,
                                                           const std::vector<Run>& runs,
                                                           std::int64_t size, bool move) {
  GrowthPlan plan;
  plan.missing = round_up(size, kPage);
  plan.total = size;
  choose_tail(arena, runs, size, plan);
  if (move) choose_slabs(runs, plan);
  return plan;
}

// The free block at the end of a mapping that leaves the fewest pages to find. Even one that saves no
// page is better than none: what is left over joins it instead of lying apart.
void CachingAllocator::choose_tail(ArenaIndex arena, const std::vector<Run>& runs,
                                   std::int64_t size, GrowthPlan& plan) {
  for (const Run& run : runs) {
    const Block& block = blocks_[run.last];
    if (block.after != kNoBlock || block.arena != arena || block.size >= size) continue;
    const std::int64_t missing = round_up(size - block.size, kPage);
    const bool better = missing < plan.missing ||
                        (missing == plan.missing &&
                         (plan.tail == kNoBlock || block.size > blocks_[plan.tail].size));
    if (!better) continue;
    if (addresses_.room_at(block.end()) < missing + options_.largest_slab.value) continue;
    plan.tail = run.last;
    plan.missing = missing;
  }
}

int CachingAllocator::chain_ends(const Run& run) const {
  return (blocks_[run.first].before == kNoBlock ? 1 : 0) +
         (blocks_[run.last].after == kNoBlock ? 1 : 0);
}

// Takes whole free slabs, large ones first, as long as they are not more than what is missing; then,
// rather than ask the device, one that is. Among equals those at the ends of a chain: a cut in its middle
// leaves a part of a slab on either side, and two blocks that never join again. Then those in the
// shortest runs: the long ones may still serve a large request as they are.
void CachingAllocator::choose_slabs(const std::vector<Run>& runs, GrowthPlan& plan) {
  constexpr std::size_t kSizes = 24;
  std::array<std::vector<GrowthPlan::Move>, 2 * kSizes> found;  // by size, own runs first
  for (std::uint32_t index = 0; index < runs.size(); ++index) {
    const Run& run = runs[index];
    if (run.size < kPage) continue;
    const Address end = plan.tail == run.last ? blocks_[run.last].address : blocks_[run.last].end();
    Address at = blocks_[run.first].address;
    while (at < end) {
      const SlabIndex id = pages_.slab(at);
      const Slab& slab = slabs_[id];
      const Address slab_end = slab.at + static_cast<Address>(slab.size);
      if (slab.at >= at && slab_end <= end) {
        const auto size_class = static_cast<std::size_t>(
            std::countr_zero(static_cast<std::uint64_t>(slab.size >> kPageBits)));
        found[2 * size_class + (run.own ? 0 : 1)].push_back({id, index});
      }
      at = slab_end;
    }
  }
  for (auto& moves : found) {
    std::sort(moves.begin(), moves.end(), [&](const auto& a, const auto& b) {
      const auto key = [&](const GrowthPlan::Move& move) {
        return std::tuple(chain_ends(runs[move.run]), -runs[move.run].size, move.run,
                          slabs_[move.slab].at);
      };
      return key(a) < key(b);  // the best one last
    });
  }
  const auto take = [&](std::vector<GrowthPlan::Move>& moves) {
    plan.moved.push_back(moves.back());
    plan.missing -= slabs_[moves.back().slab].size;
    moves.pop_back();
  };
  for (std::size_t foreign = 0; foreign < 2; ++foreign) {
    for (std::size_t size_class = kSizes; size_class-- > 0;) {
      auto& moves = found[2 * size_class + foreign];
      while (!moves.empty() && (kPage << size_class) <= plan.missing) take(moves);
    }
  }
  for (std::size_t place = 0; place < found.size() && plan.missing > 0; ++place) {
    if (!found[place].empty()) take(found[place]);
  }
}

std::int64_t CachingAllocator::largest_new_slab(std::int64_t request) const {
  const std::int64_t most = std::min(options_.largest_slab.value, provider_.largest_handle().value);
  const std::int64_t wanted = std::min(request / kSlabsPerRequest,
                                       statistics_.reserved_bytes.current / kSlabsHeld);
  return std::clamp(wanted, kPage, std::max(kPage, most));
}

bool CachingAllocator::create_missing(GrowthPlan& plan) {
  const std::int64_t largest = largest_new_slab(plan.total);
  const auto refuse = [&] {
    for (const Slab& slab : plan.created) {
      provider_.release(slab.handle, Bytes(slab.size));
      ++statistics_.device_frees;
    }
    return false;
  };
  std::int64_t made = 0;
  if (plan.missing > 0 &&
      statistics_.reserved_bytes.current + plan.missing > options_.limit.value) {
    return false;
  }
  while (plan.missing > 0) {
    const auto pages = static_cast<std::uint64_t>(std::min(largest, plan.missing) >> kPageBits);
    const std::int64_t size = static_cast<std::int64_t>(std::bit_floor(pages)) << kPageBits;
    const auto handle = provider_.create(Bytes(size));
    if (!handle) return refuse();
    ++statistics_.device_allocations;
    plan.created.push_back({*handle, 0, size});
    plan.missing -= size;
    made += size;
  }
  plan.total = made;
  for (const GrowthPlan::Move& move : plan.moved) plan.total += slabs_[move.slab].size;
  return true;
}

bool CachingAllocator::reserve_addresses(GrowthPlan& plan) {
  if (plan.tail != kNoBlock && addresses_.take_at(blocks_[plan.tail].end(), plan.total)) {
    plan.at = blocks_[plan.tail].end();
    return true;
  }
  plan.tail = kNoBlock;
  std::optional<Address> at = addresses_.take(plan.total);
  if (!at) {
    unmap_retired(true);
    at = addresses_.take(plan.total);
  }
  if (!at) {
    undo_growth(plan, 0);
    return false;
  }
  plan.at = *at;
  return true;
}

// Moved slabs first: they stay mapped at their old address too, until that is retired.
bool CachingAllocator::map_planned(GrowthPlan& plan) {
  Address at = plan.at;
  std::size_t mapped = 0;
  const auto map_one = [&](const Slab& slab) {
    if (!provider_.map(at, slab.handle, Bytes(slab.size))) return false;
    ++mapped;
    ++statistics_.mappings;
    at += static_cast<Address>(slab.size);
    return true;
  };
  for (const GrowthPlan::Move& move : plan.moved) {
    if (!map_one(slabs_[move.slab])) {
      undo_growth(plan, mapped);
      return false;
    }
  }
  for (const Slab& slab : plan.created) {
    if (!map_one(slab)) {
      undo_growth(plan, mapped);
      return false;
    }
  }
  return true;
}

void CachingAllocator::undo_growth(GrowthPlan& plan, std::size_t mapped) {
  Address at = plan.at;
  for (std::size_t index = 0; index < mapped; ++index) {
    const std::int64_t size = index < plan.moved.size()
                                  ? slabs_[plan.moved[index].slab].size
                                  : plan.created[index - plan.moved.size()].size;
    provider_.unmap(at, Bytes(size));
    at += static_cast<Address>(size);
  }
  if (plan.at != 0) addresses_.give(plan.at, plan.total);
  for (const Slab& slab : plan.created) {
    provider_.release(slab.handle, Bytes(slab.size));
    ++statistics_.device_frees;
  }
}

void CachingAllocator::detach_moved(ArenaIndex arena, const std::vector<Run>& runs,
                                    const GrowthPlan& plan) {
  if (plan.moved.empty()) return;
  std::vector<GrowthPlan::Move> moves = plan.moved;
  std::sort(moves.begin(), moves.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.run, slabs_[a.slab].at) < std::pair(b.run, slabs_[b.slab].at);
  });
  BlockIndex id = kNoBlock;
  for (std::size_t index = 0; index < moves.size(); ++index) {
    const Slab& slab = slabs_[moves[index].slab];
    if (index == 0 || moves[index].run != moves[index - 1].run) id = runs[moves[index].run].first;
    while (blocks_[id].end() <= slab.at) id = blocks_[id].after;
    id = cut_out(arena, id, {slab.at, slab.at + static_cast<Address>(slab.size)});
    retired_.push_back({slab.at, slab.size, next_mark_group_});
    pages_.set_slab(slab.at, slab.size, kNoSlab);
    notify(MemoryAction::kSegmentUnmap, slab.at, slab.size, arenas_[arena]->stream);
    ++statistics_.slabs_remapped;
    statistics_.bytes_remapped += Bytes(slab.size);
  }
  // Behind all the waits above: when this mark is reached, nothing uses the old addresses.
  moves_left_ = std::max<std::int64_t>(0, moves_left_ - static_cast<std::int64_t>(moves.size()));
  const OrderMark mark = order_.record(arenas_[arena]->stream);
  mark_groups_[next_mark_group_++] = {mark, static_cast<std::int64_t>(moves.size())};
}

// Takes [hole.begin, hole.end) out of the free blocks it touches, the first of which is `id`. Returns
// the block behind the hole, if the chain went on.
BlockIndex CachingAllocator::cut_out(ArenaIndex arena, BlockIndex id, Interval<Address> hole) {
  while (true) {
    if (!is_behind(arena, blocks_[id])) order_behind(arena, blocks_[id].arena);
    FitIndex& free = arenas_[blocks_[id].arena]->free;
    free.remove(blocks_, id);
    if (blocks_[id].address < hole.begin) {
      const BlockIndex rest =
          blocks_.split(id, static_cast<std::int64_t>(hole.begin - blocks_[id].address));
      free.insert(blocks_, id);
      blocks_[id].after = kNoBlock;
      id = rest;
    } else if (blocks_[id].before != kNoBlock) {
      blocks_[blocks_[id].before].after = kNoBlock;
    }
    if (blocks_[id].end() > hole.end) {
      const BlockIndex rest =
          blocks_.split(id, static_cast<std::int64_t>(hole.end - blocks_[id].address));
      blocks_[rest].state = BlockState::kFree;
      free.insert(blocks_, rest);
    }
    const BlockIndex after = blocks_[id].after;
    const bool done = blocks_[id].end() == hole.end;
    blocks_.drop(id);
    if (after != kNoBlock) blocks_[after].before = kNoBlock;
    if (done) return after;
    id = after;
  }
}

SlabIndex CachingAllocator::make_slab(const Slab& slab) {
  SlabIndex id = static_cast<SlabIndex>(slabs_.size());
  if (spare_slabs_.empty()) {
    slabs_.push_back(slab);
  } else {
    id = spare_slabs_.back();
    spare_slabs_.pop_back();
    slabs_[id] = slab;
  }
  statistics_.reserved_bytes.add(slab.size);
  statistics_.slabs.add(1);
  return id;
}

void CachingAllocator::drop_slab(SlabIndex id) {
  statistics_.reserved_bytes.subtract(slabs_[id].size);
  statistics_.slabs.subtract(1);
  ++statistics_.device_frees;
  slabs_[id] = Slab{};
  spare_slabs_.push_back(id);
}

void CachingAllocator::attach(ArenaIndex arena, const GrowthPlan& plan) {
  Address at = plan.at;
  const auto place = [&](SlabIndex id) {
    slabs_[id].at = at;
    pages_.set_slab(at, slabs_[id].size, id);
    notify(MemoryAction::kSegmentMap, at, slabs_[id].size, arenas_[arena]->stream);
    at += static_cast<Address>(slabs_[id].size);
  };
  for (const GrowthPlan::Move& move : plan.moved) place(move.slab);
  for (const Slab& slab : plan.created) place(make_slab(slab));
  add_free_block(arena, plan.at, plan.total, plan.tail);
}

void CachingAllocator::add_free_block(ArenaIndex arena, Address at, std::int64_t size,
                                      BlockIndex before) {
  const BlockIndex id = blocks_.make(at, size);
  blocks_[id].arena = arena;
  blocks_[id].epoch = arenas_[arena]->epoch;
  blocks_[id].before = before;
  if (before != kNoBlock) blocks_[before].after = id;
  join_and_insert(id);
}

BlockIndex CachingAllocator::grow_plain(ArenaIndex arena, std::int64_t size) {
  const std::int64_t wanted = round_up(size, kPage);
  const auto refused = [&] {
    return statistics_.reserved_bytes.current + wanted > options_.limit.value;
  };
  std::optional<Address> at;
  if (!refused()) at = provider_.allocate_slab(Bytes(wanted));
  if (!at) {
    ++statistics_.retries;
    release_idle_plain();
    if (refused()) return kNoBlock;
    at = provider_.allocate_slab(Bytes(wanted));
    if (!at) return kNoBlock;
  }
  ++statistics_.device_allocations;
  const SlabIndex slab = make_slab({{}, *at, wanted});
  pages_.set_slab(*at, wanted, slab);
  notify(MemoryAction::kSegmentAlloc, *at, wanted, arenas_[arena]->stream);
  add_free_block(arena, *at, wanted, kNoBlock);
  return take_fit(arena, size);
}

// The oldest mappings whose work is done, once enough have gathered; all of them, waiting, when asked.
void CachingAllocator::unmap_retired(bool all) {
  if (!all && static_cast<std::int64_t>(retired_.size()) <= options_.most_retired) return;
  std::size_t done = 0;
  for (; done < retired_.size(); ++done) {
    const Retired& old = retired_[done];
    const auto group = mark_groups_.find(old.mark_group);
    if (all) {
      order_.synchronize(group->second.first);
    } else if (!order_.reached(group->second.first)) {
      break;
    }
    provider_.unmap(old.at, Bytes(old.size));
    addresses_.give(old.at, old.size);
    if (--group->second.second == 0) {
      order_.forget(group->second.first);
      mark_groups_.erase(group);
    }
  }
  retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(done));
}

}  // namespace plimsoll::memory
