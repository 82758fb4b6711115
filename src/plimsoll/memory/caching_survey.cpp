// What lies free, slab by slab, and which of it a new stretch of addresses is best made of.
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <tuple>

#include "plimsoll/base/checked.h"
#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/caching_parts.h"

namespace plimsoll::memory {
namespace {

// Parts of slabs are used once more than a 256th of what is held would lie idle.
constexpr std::int64_t kIdleShare = 256;

}  // namespace

std::vector<CachingAllocator::Run> CachingAllocator::free_runs(ArenaIndex arena) const {
  const std::uint32_t pool = arenas_[arena]->pool;
  const auto usable = [&](BlockIndex id) {
    if (id == kNoBlock || blocks_[id].state != BlockState::kFree) return false;
    const Arena& owner = *arenas_[blocks_[id].arena];
    if (blocks_[id].arena == arena) return true;
    if (owner.pool != pool || !options_.lend) return false;
    return is_behind(arena, blocks_[id]) || order_.can_mark(owner.stream);
  };
  std::vector<Run> runs;
  for (const auto& owner : arenas_) {
    if (owner->pool != pool) continue;
    owner->free.for_each(blocks_, [&](BlockIndex id) {
      if (!usable(id) || usable(blocks_[id].before)) return;
      Run run{id, id, blocks_[id].size, blocks_[id].arena == arena};
      while (usable(blocks_[run.last].after)) {
        run.last = blocks_[run.last].after;
        run.size += blocks_[run.last].size;
        run.own = run.own && blocks_[run.last].arena == arena;
      }
      runs.push_back(run);
    });
  }
  return runs;
}

// Runs from the worst to take slabs from to the best. A cut in the middle of a chain leaves a part
// of a slab on either side, and two blocks that never join again; so the ends of chains come first.
// Then the shortest runs: the long ones may still serve a large request as they are.
std::vector<std::uint32_t> CachingAllocator::by_worth(const std::vector<Run>& runs) const {
  const auto chain_ends = [&](const Run& run) {
    return (blocks_[run.first].before == kNoBlock ? 1 : 0) +
           (blocks_[run.last].after == kNoBlock ? 1 : 0);
  };
  std::vector<std::tuple<int, std::int64_t, std::uint32_t>> keys;
  for (std::uint32_t index = 0; index < runs.size(); ++index) {
    keys.emplace_back(chain_ends(runs[index]), -runs[index].size, index);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::uint32_t> order;
  for (const auto& key : keys) order.push_back(std::get<2>(key));
  return order;
}

CachingAllocator::Survey CachingAllocator::survey(const std::vector<Run>& runs) const {
  Survey out;
  std::vector<Piece> partial;
  for (const std::uint32_t index : by_worth(runs)) {
    const Run& run = runs[index];
    const Address end = blocks_[run.last].end();
    for (Address at = blocks_[run.first].address; at < end;) {
      const WindowIndex id = pages_.window(at);
      const Window& window = windows_[id];
      const std::int64_t size = slabs_[window.slab].size;
      const Address stop = std::min(end, window.at + static_cast<Address>(size));
      const Piece piece{window.slab, id, index, at, stop};
      if (piece.size() == size) {
        out.idle.push_back(
            {window.slab, run.own, static_cast<std::uint32_t>(out.pieces.size()), 1});
        out.pieces.push_back(piece);
      } else {
        partial.push_back(piece);
      }
      at = stop;
    }
  }
  sort_partial(partial, runs, out);
  return out;
}

// A slab with several windows is free when all its pieces are. Of the others those ends are of use
// that are ends of their chain already: no chain is cut for them.
void CachingAllocator::sort_partial(std::vector<Piece>& partial, const std::vector<Run>& runs,
                                    Survey& out) const {
  std::stable_sort(partial.begin(), partial.end(),
                   [](const Piece& a, const Piece& b) { return a.slab < b.slab; });
  for (auto first = partial.begin(); first != partial.end();) {
    const auto last = std::find_if(first, partial.end(),
                                   [&](const Piece& piece) { return piece.slab != first->slab; });
    std::int64_t free = 0;
    bool own = true;
    for (auto piece = first; piece != last; ++piece) {
      free += piece->size();
      own = own && runs[piece->run].own;
    }
    const std::int64_t size = slabs_[first->slab].size;
    if (free == size) {
      out.idle.push_back({first->slab, own, static_cast<std::uint32_t>(out.pieces.size()),
                          static_cast<std::uint32_t>(last - first)});
      out.pieces.insert(out.pieces.end(), first, last);
    } else {
      for (auto piece = first; piece != last; ++piece) {
        const Address at = windows_[piece->window].at;
        const Block& front = blocks_[runs[piece->run].first];
        const Block& back = blocks_[runs[piece->run].last];
        const bool chain_ends = piece->end == back.end() && back.after == kNoBlock;
        const bool chain_begins = piece->begin == front.address && front.before == kNoBlock;
        if (piece->end == at + static_cast<Address>(size) && chain_ends)
          out.heads.push_back(*piece);
        if (piece->begin == at && chain_begins) out.lasts.push_back(*piece);
      }
    }
    first = last;
  }
  std::stable_sort(out.lasts.begin(), out.lasts.end(),
                   [](const Piece& a, const Piece& b) { return a.size() < b.size(); });
}

CachingAllocator::GrowthPlan CachingAllocator::plan_growth(ArenaIndex arena,
                                                           const std::vector<Run>& runs,
                                                           std::int64_t size, bool move) const {
  GrowthPlan plan;
  plan.missing = round_up(size, kPage);
  choose_tail(arena, runs, size, plan);
  if (!move) return plan;
  const Survey found = survey(runs);
  choose_slabs(found, plan);
  const std::int64_t held = statistics_.reserved_bytes.current;
  const std::int64_t idle = held + plan.missing - statistics_.all.bytes.current - size;
  const bool shares = came_back_ && held <= kSmallProgram && idle * kIdleShare >= held;
  if (plan.missing <= 0 || !shares) return plan;
  GrowthPlan shared;
  choose_ends(arena, runs, found, size, shared);
  choose_slabs(found, shared);
  return shared.missing < plan.missing ? shared : plan;
}

// The free block at the end of a mapping that leaves the fewest pages to find. Even one that saves
// no page is better than none: what is left over joins it instead of lying apart.
void CachingAllocator::choose_tail(ArenaIndex arena, const std::vector<Run>& runs,
                                   std::int64_t size, GrowthPlan& plan) const {
  for (const Run& run : runs) {
    const Block& block = blocks_[run.last];
    if (block.after != kNoBlock || block.arena != arena || block.size >= size) continue;
    const std::int64_t missing = round_up(size - block.size, kPage);
    const bool better =
        missing < plan.missing || (missing == plan.missing &&
                                   (plan.tail == kNoBlock || block.size > blocks_[plan.tail].size));
    if (!better || !has_room(run.last, missing)) continue;
    plan.tail = run.last;
    plan.missing = missing;
  }
}

// Parts of slabs to begin and to end with: those that leave the fewest pages to find, then the
// fewest bytes over. A free block that can grow at its place goes before them, the largest first.
void CachingAllocator::choose_ends(ArenaIndex arena, const std::vector<Run>& runs,
                                   const Survey& found, std::int64_t size, GrowthPlan& plan) const {
  const auto usable = [&](const Piece& piece) {
    return piece.size() < size && is_ready(arena, runs[piece.run], piece);
  };
  std::vector<Piece> lasts;
  std::copy_if(found.lasts.begin(), found.lasts.end(), std::back_inserter(lasts), usable);
  const std::int64_t most = lasts.empty() ? 0 : lasts.back().size();
  std::pair best(Bytes::max().value, std::int64_t{0});
  const auto consider = [&](BlockIndex tail, const Piece& head, std::int64_t have) {
    const std::int64_t rest = size - have;
    const std::int64_t missing = round_up(std::max<std::int64_t>(rest - most, 0), kPage);
    Piece last;
    if (missing < rest) {
      last = *std::find_if(lasts.begin(), lasts.end(),
                           [&](const Piece& piece) { return piece.size() >= rest - missing; });
    }
    const std::pair result(missing, tail != kNoBlock ? -have : missing + last.size() - rest);
    if (result > best || (tail != kNoBlock && !has_room(tail, missing))) return;
    best = result;
    plan.tail = tail;
    plan.head = head;
    plan.last = last;
    plan.missing = missing;
  };
  consider(kNoBlock, {}, 0);
  for (const Piece& piece : found.heads) {
    if (usable(piece)) consider(kNoBlock, piece, piece.size());
  }
  for (const Run& run : runs) {
    const Block& block = blocks_[run.last];
    if (block.after != kNoBlock || block.arena != arena || block.size >= size) continue;
    consider(run.last, {}, block.size);
  }
}

// Two slabs more than asked for: one moved because nothing smaller was free, one to end with.
bool CachingAllocator::has_room(BlockIndex tail, std::int64_t missing) const {
  return addresses_.room_at(blocks_[tail].end()) >= missing + 2 * options_.largest_slab.value;
}

// Only what the arena is ordered behind already: a part of a slab is not worth a wait.
bool CachingAllocator::is_ready(ArenaIndex arena, const Run& run, const Piece& piece) const {
  for (BlockIndex id = run.first;; id = blocks_[id].after) {
    const Block& block = blocks_[id];
    if (block.end() > piece.begin && !is_behind(arena, block)) return false;
    if (block.end() >= piece.end) return true;
  }
}

// Takes whole free slabs, large ones first, as long as they are not more than what is missing;
// then, rather than ask the device, one that is.
void CachingAllocator::choose_slabs(const Survey& found, GrowthPlan& plan) const {
  constexpr std::size_t kSizes = 24;
  std::array<std::vector<const Survey::IdleSlab*>, 2 * kSizes> classes;  // by size, own runs first
  const auto in_tail = [&](const Survey::IdleSlab& slab) {
    if (plan.tail == kNoBlock) return false;
    const Block& tail = blocks_[plan.tail];
    return std::any_of(
        found.pieces.begin() + slab.first, found.pieces.begin() + slab.first + slab.count,
        [&](const Piece& piece) { return piece.end > tail.address && piece.begin < tail.end(); });
  };
  if (plan.missing > 0) {
    for (const Survey::IdleSlab& slab : found.idle) {
      if (in_tail(slab)) continue;
      const auto size_class = static_cast<std::size_t>(
          std::countr_zero(static_cast<std::uint64_t>(slabs_[slab.slab].size >> kPageBits)));
      classes[2 * size_class + (slab.own ? 0 : 1)].push_back(&slab);
    }
  }
  const auto take = [&](std::vector<const Survey::IdleSlab*>& slabs) {
    const Survey::IdleSlab& slab = *slabs.back();
    plan.moved.push_back(slab.slab);
    plan.taken.insert(plan.taken.end(), found.pieces.begin() + slab.first,
                      found.pieces.begin() + slab.first + slab.count);
    plan.missing -= slabs_[slab.slab].size;
    slabs.pop_back();
  };
  for (std::size_t foreign = 0; foreign < 2; ++foreign) {
    for (std::size_t size_class = kSizes; size_class-- > 0;) {
      auto& slabs = classes[2 * size_class + foreign];
      while (!slabs.empty() && (kPage << size_class) <= plan.missing) take(slabs);
    }
  }
  for (std::size_t place = 0; place < classes.size() && plan.missing > 0; ++place) {
    if (!classes[place].empty()) take(classes[place]);
  }
}

}  // namespace plimsoll::memory
