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

// What is held consists of about `held` slabs, a request of at least `request`. Every slab costs 40
// us to make and 30 us to move; a large one that is partly used keeps the rest of it idle.
struct SlabShares {
  std::int64_t held;
  std::int64_t request;
};
constexpr SlabShares kSharesOfSmall{1024, 8};
constexpr SlabShares kSharesOfLarge{640, 4};

constexpr std::int64_t kAllocationsPerMove = 4096;

}  // namespace

BlockIndex CachingAllocator::grow(ArenaIndex arena, const std::vector<Run>& runs,
                                  std::int64_t size) {
  if (reserved_size_.value == 0 && !reserve_once()) return kNoBlock;
  const bool movable = arenas_[arena]->pool == 0;
  GrowthPlan plan = plan_growth(arena, runs, size, movable && may_move());
  if (!create_missing(plan, size)) {
    if (!movable) return kNoBlock;
    plan = plan_growth(arena, runs, size, true);
    if (!create_missing(plan, size)) return kNoBlock;
  }
  if (!reserve_addresses(plan) || !map_planned(plan)) return kNoBlock;
  detach(arena, runs, plan);
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

// Moving a slab costs tens of microseconds, and growing instead costs memory for good. A size that
// comes back belongs to a program that repeats itself, and for that growing has no end to pay for:
// it may always move. Other sizes draw on an allowance that refills by one for every 4096
// allocations; when it is used up they get new memory, as long as the device has any.
bool CachingAllocator::may_move() {
  const std::int64_t earned = statistics_.all.blocks.allocated / kAllocationsPerMove;
  moves_left_ = std::min(options_.free_moves, moves_left_ + earned - moves_earned_);
  moves_earned_ = earned;
  return came_back_ || moves_left_ > 0;
}

std::int64_t CachingAllocator::largest_new_slab(std::int64_t request) const {
  const std::int64_t most = std::min(options_.largest_slab.value, provider_.largest_handle().value);
  const std::int64_t held = statistics_.reserved_bytes.current;
  const SlabShares& shares = held <= kSmallProgram ? kSharesOfSmall : kSharesOfLarge;
  const std::int64_t wanted = std::min(request / shares.request, held / shares.held);
  return std::clamp(wanted, kPage, std::max(kPage, most));
}

bool CachingAllocator::create_missing(GrowthPlan& plan, std::int64_t request) {
  if (plan.missing > 0 &&
      statistics_.reserved_bytes.current + plan.missing > options_.limit.value) {
    return false;
  }
  const std::int64_t largest = largest_new_slab(request);
  while (plan.missing > 0) {
    const auto pages = static_cast<std::uint64_t>(std::min(largest, plan.missing) >> kPageBits);
    const std::int64_t size = static_cast<std::int64_t>(std::bit_floor(pages)) << kPageBits;
    const auto handle = provider_.create(Bytes(size));
    if (!handle) {
      undo_growth(plan);
      return false;
    }
    ++statistics_.device_allocations;
    plan.created.push_back({*handle, size});
    plan.missing -= size;
  }
  return true;
}

bool CachingAllocator::reserve_addresses(GrowthPlan& plan) {
  for (const SlabIndex slab : plan.moved) plan.mapped += slabs_[slab].size;
  for (const Slab& slab : plan.created) plan.mapped += slab.size;
  plan.mapped += slabs_[plan.head.slab].size + slabs_[plan.last.slab].size;
  if (plan.tail != kNoBlock) {
    plan.at = blocks_[plan.tail].end();
    PLIMSOLL_CHECK(addresses_.take_at(plan.at, plan.mapped), "caching allocator: no room to grow");
    return true;
  }
  std::optional<Address> at = addresses_.take(plan.mapped);
  if (!at) {
    unmap_retired(true);
    at = addresses_.take(plan.mapped);
  }
  if (at) plan.at = *at;
  if (!at) undo_growth(plan);
  return at.has_value();
}

// What is there stays mapped at its old address too: as long as something is used there, or until
// that window is retired.
bool CachingAllocator::map_planned(GrowthPlan& plan) {
  std::vector<RowEntry> row;
  const auto add = [&](const Slab& slab) {
    if (slab.size > 0) row.push_back({slab.handle, Bytes(slab.size)});  // 0: no head or no last
  };
  add(slabs_[plan.head.slab]);
  for (const SlabIndex slab : plan.moved) add(slabs_[slab]);
  for (const Slab& slab : plan.created) add(slab);
  add(slabs_[plan.last.slab]);
  const bool done = provider_.map_row(plan.at, row);
  if (done) {
    statistics_.mappings += static_cast<std::int64_t>(row.size());
  } else {
    undo_growth(plan);
  }
  return done;
}

void CachingAllocator::undo_growth(GrowthPlan& plan) {
  if (plan.at != 0) addresses_.give(plan.at, plan.mapped);
  for (const Slab& slab : plan.created) {
    provider_.release(slab.handle, Bytes(slab.size));
    ++statistics_.device_frees;
  }
}

// Moved pieces leave their old place; windows through which nothing is used any more are retired.
void CachingAllocator::detach(ArenaIndex arena, const std::vector<Run>& runs, GrowthPlan& plan) {
  for (const Piece& end : {plan.head, plan.last}) {
    if (end.slab != kNoSlab) plan.taken.push_back(end);
  }
  if (plan.taken.empty()) return;
  const std::vector<Retired> closed = cut_pieces(arena, runs, plan.taken);
  const auto moved = static_cast<std::int64_t>(plan.taken.size());
  statistics_.slabs_remapped += moved;
  for (const Piece& piece : plan.taken) statistics_.bytes_remapped += Bytes(piece.size());
  moves_left_ = std::max<std::int64_t>(0, moves_left_ - moved);
  if (closed.empty()) return;
  retired_.insert(retired_.end(), closed.begin(), closed.end());
  // Behind all the waits above: when this mark is reached, nothing uses the old addresses.
  const OrderMark mark = order_.record(arenas_[arena]->stream);
  mark_groups_[next_mark_group_++] = {mark, static_cast<std::int64_t>(closed.size())};
}

// Takes the pieces out of their runs, for the arena. Returns the windows that are empty now.
std::vector<CachingAllocator::Retired> CachingAllocator::cut_pieces(ArenaIndex arena,
                                                                    const std::vector<Run>& runs,
                                                                    std::vector<Piece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::pair(a.run, a.begin) < std::pair(b.run, b.begin);
  });
  std::vector<Retired> closed;
  BlockIndex id = kNoBlock;
  for (std::size_t index = 0; index < pieces.size(); ++index) {
    const Piece& piece = pieces[index];
    if (index == 0 || piece.run != pieces[index - 1].run) id = runs[piece.run].first;
    while (blocks_[id].end() <= piece.begin) id = blocks_[id].after;
    id = cut_out(arena, id, {piece.begin, piece.end});
    notify(MemoryAction::kSegmentUnmap, piece.begin, piece.size(), arenas_[arena]->stream);
    Window& window = windows_[piece.window];
    window.covered -= piece.size();
    if (window.covered > 0) continue;
    closed.push_back({window.at, slabs_[piece.slab].size, next_mark_group_});
    close_window(piece.window);
  }
  return closed;
}

// Takes [hole.begin, hole.end) out of the free blocks it touches, the first of which is `id`.
// Returns the block behind the hole, if the chain went on.
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

CachingAllocator::SlabIndex CachingAllocator::make_slab(const Slab& slab) {
  auto id = static_cast<SlabIndex>(slabs_.size());
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
  if (slabs_[id].on_host) {
    statistics_.spilled_bytes.subtract(slabs_[id].size);
  } else {
    statistics_.reserved_bytes.subtract(slabs_[id].size);
    statistics_.slabs.subtract(1);
    ++statistics_.device_frees;
  }
  slabs_[id] = Slab{};
  spare_slabs_.push_back(id);
}

void CachingAllocator::open_window(Address at, SlabIndex slab, std::int64_t covered) {
  auto id = static_cast<WindowIndex>(windows_.size());
  if (spare_windows_.empty()) {
    windows_.push_back({at, slab, covered});
  } else {
    id = spare_windows_.back();
    spare_windows_.pop_back();
    windows_[id] = {at, slab, covered};
  }
  pages_.set_window(at, slabs_[slab].size, id);
}

void CachingAllocator::close_window(WindowIndex id) {
  pages_.clear_window(windows_[id].at, slabs_[windows_[id].slab].size);
  windows_[id] = Window{};
  spare_windows_.push_back(id);
}

void CachingAllocator::attach(ArenaIndex arena, const GrowthPlan& plan) {
  Address at = plan.at;
  const auto place = [&](SlabIndex id, std::int64_t covered, Address begin) {
    open_window(at, id, covered);
    notify(MemoryAction::kSegmentMap, begin, covered, arenas_[arena]->stream);
    at += static_cast<Address>(slabs_[id].size);
  };
  const std::int64_t before = slabs_[plan.head.slab].size - plan.head.size();
  const std::int64_t behind = slabs_[plan.last.slab].size - plan.last.size();
  if (plan.head.slab != kNoSlab) {
    place(plan.head.slab, plan.head.size(), at + static_cast<Address>(before));
  }
  for (const SlabIndex slab : plan.moved) place(slab, slabs_[slab].size, at);
  for (const Slab& slab : plan.created) place(make_slab(slab), slab.size, at);
  if (plan.last.slab != kNoSlab) place(plan.last.slab, plan.last.size(), at);
  add_free_block(arena, plan.at + static_cast<Address>(before), plan.mapped - before - behind,
                 plan.tail);
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
  open_window(*at, make_slab({{}, wanted}), wanted);
  notify(MemoryAction::kSegmentAlloc, *at, wanted, arenas_[arena]->stream);
  add_free_block(arena, *at, wanted, kNoBlock);
  return take_fit(arena, size);
}

// The oldest mappings whose work is done, once enough have gathered; all of them, waiting, when
// asked.
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
