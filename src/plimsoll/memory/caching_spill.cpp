// Slabs change places between the device and the host. Everything that can fail comes first, for a
// run of windows that are neighbours: new memory, a second address for it, the copy. Then the
// device finishes, and the new memory is mapped where the old one was.
//
//   run     |2 MiB|2 MiB|2 MiB| ...     access is given once and one copy queued for all of it: for
//   second  |     |     |     | ...     every slab by itself these are most of what a move takes
//
// Runs are short, so that the next one is mapped while this one is copied.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/check.h"
#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/caching_parts.h"

namespace plimsoll::memory {

namespace {

// A quarter of a millisecond's work to map, more than a millisecond's to copy.
constexpr std::int64_t kLongestRun = std::int64_t{64} << 20;

}  // namespace

// A run of windows that get other slabs.
struct CachingAllocator::Exchange {
  std::vector<LyingBlock> windows;
  std::vector<Slab> to;
  Address at = 0;  // of the first of `to`, until they take the windows' places
  Bytes size{0};   // of all
};

SpillOutcome CachingAllocator::spill(std::span<const Address> blocks) {
  const std::lock_guard guard(lock_);
  return move_windows(blocks, true);
}

SpillOutcome CachingAllocator::restore(std::span<const Address> blocks) {
  const std::lock_guard guard(lock_);
  return move_windows(blocks, false);
}

Bytes CachingAllocator::to_be_pinned(std::span<const Address> blocks) const {
  const std::lock_guard guard(lock_);
  std::int64_t wanted = 0;
  for (const Address at : blocks) {
    if (const BlockIndex id = pages_.find(at); id != kNoBlock) wanted += blocks_[id].size;
  }
  for (const Slab& slab : spare_host_) wanted -= slab.size;
  return Bytes(std::max<std::int64_t>(0, wanted));
}

std::string CachingAllocator::cannot_move(std::span<const Address> blocks) const {
  for (const Address at : blocks) {
    const BlockIndex id = at % kGranule == 0 ? pages_.find(at) : kNoBlock;
    if (id == kNoBlock) return fmt::format("no live block begins at {:#x}", at);
    if (arenas_[blocks_[id].arena]->pool != 0) {
      return fmt::format("the block at {:#x} belongs to the pool of a captured graph", at);
    }
  }
  const bool capturing =
      !captures_.empty() || std::any_of(arenas_.begin(), arenas_.end(), [&](const auto& arena) {
        return !order_.can_mark(arena->stream);
      });
  return capturing ? "a stream is being captured into a graph" : provider_.host_refusal();
}

// Of the blocks: the windows that are, or are not, host memory, in order of address and each once,
// with a block that lies in it.
std::vector<CachingAllocator::LyingBlock> CachingAllocator::windows_of(
    std::span<const Address> blocks, bool on_host) const {
  std::vector<Address> sorted(blocks.begin(), blocks.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<LyingBlock> out;
  for (const Address begin : sorted) {
    const BlockIndex block = pages_.find(begin);
    for (Address at = begin; at < blocks_[block].end();) {
      const WindowIndex id = pages_.window(at);
      const Slab& slab = slabs_[windows_[id].slab];
      const bool known = !out.empty() && out.back().first == id;
      if (slab.on_host == on_host && !known) out.emplace_back(id, block);
      at = windows_[id].at + static_cast<Address>(slab.size);
    }
  }
  return out;
}

// The blocks that lie in a window, wholly or in part; `one` is one of them.
std::vector<BlockIndex> CachingAllocator::blocks_in(WindowIndex window, BlockIndex one) const {
  const Address begin = windows_[window].at;
  const Address end = begin + static_cast<Address>(slabs_[windows_[window].slab].size);
  while (blocks_[one].address > begin && blocks_[one].before != kNoBlock) {
    one = blocks_[one].before;
  }
  std::vector<BlockIndex> out;
  for (; one != kNoBlock && blocks_[one].address < end; one = blocks_[one].after) {
    out.push_back(one);
  }
  return out;
}

bool CachingAllocator::all_spilled(WindowIndex window, BlockIndex one) const {
  if (windows_[window].covered != slabs_[windows_[window].slab].size) return false;
  const std::vector<BlockIndex> inside = blocks_in(window, one);
  return std::all_of(inside.begin(), inside.end(), [&](BlockIndex id) {
    return blocks_[id].spilled && blocks_[id].state == BlockState::kLive;
  });
}

SpillOutcome CachingAllocator::move_windows(std::span<const Address> blocks, bool to_host) {
  SpillOutcome out;
  out.problem = cannot_move(blocks);
  if (!out.problem.empty()) return out;
  if (to_host) {
    for (const Address at : blocks) blocks_[pages_.find(at)].spilled = true;
  }
  // From here on no kernel runs that uses what is moved, and no second mapping of it is left.
  if (!provider_.synchronize()) {
    out.problem = "the device did not finish its work";
    return out;
  }
  unmap_retired(true);
  std::vector<LyingBlock> windows = windows_of(blocks, !to_host);
  if (to_host) {
    std::erase_if(windows,
                  [&](const LyingBlock& one) { return !all_spilled(one.first, one.second); });
  }
  std::vector<Exchange> begun;
  Bytes planned{0};
  for (std::span<const LyingBlock> rest(windows); !rest.empty();) {
    const std::size_t run = length_of_run(rest);
    const std::size_t moves = begin_exchange(rest.first(run), to_host, begun);
    if (moves > 0) planned += begun.back().size;
    if (moves < run) {
      const Bytes size(slabs_[windows_[rest[moves].first].slab].size);
      out.problem = fmt::format("{} of {} memory could not be had; {} moved before", human(size),
                                to_host ? "host" : "device", human(planned));
      break;
    }
    rest = rest.subspan(run);
  }
  const bool copied = provider_.synchronize();
  for (const Exchange& exchange : begun) {
    if (finish_exchange(exchange, copied)) out.moved += exchange.size;
  }
  if (out.moved < planned) out.problem = "the device refused what it had begun";
  for (const Address at : blocks) out.stays += Bytes(blocks_[pages_.find(at)].size);
  out.stays = std::max(0_bytes, out.stays - out.moved);
  return out;
}

// A slab of the device under the limit, from what lies idle where nothing else is left; or of the
// host, pinned before or now.
std::optional<CachingAllocator::Slab> CachingAllocator::memory_for(std::int64_t size,
                                                                   bool on_host) {
  if (on_host) {
    const auto spare = std::find_if(spare_host_.begin(), spare_host_.end(),
                                    [&](const Slab& slab) { return slab.size == size; });
    if (spare != spare_host_.end()) {
      const Slab found = *spare;
      spare_host_.erase(spare);
      return found;
    }
    const auto made = provider_.create_on_host(Bytes(size));
    return made ? std::optional(Slab{*made, size, true}) : std::nullopt;
  }
  const auto create = [&]() -> std::optional<PhysicalHandle> {
    if (statistics_.reserved_bytes.current + size > options_.limit.value) return std::nullopt;
    return provider_.create(Bytes(size));
  };
  auto made = create();
  if (!made && trim_locked().value > 0) made = create();
  if (!made) return std::nullopt;
  // Counted at once: the next window must fit beside it.
  statistics_.reserved_bytes.add(size);
  return Slab{*made, size, false};
}

// Undoes memory_for().
void CachingAllocator::give_up(const Slab& slab) {
  if (slab.on_host) {
    spare_host_.push_back(slab);
    return;
  }
  statistics_.reserved_bytes.subtract(slab.size);
  provider_.release(slab.handle, Bytes(slab.size));
}

// How many of the windows, from the first on, are neighbours and not too much at once.
std::size_t CachingAllocator::length_of_run(std::span<const LyingBlock> windows) const {
  std::size_t count = 0;
  const Address begin = windows_[windows.front().first].at;
  Address end = begin;
  while (count < windows.size()) {
    const Window& next = windows_[windows[count].first];
    const auto size = static_cast<Address>(slabs_[next.slab].size);
    if (count > 0 && (next.at != end || next.at + size - begin > kLongestRun)) break;
    end = next.at + size;
    ++count;
  }
  return count;
}

// How many of the windows, from the first on, were begun: as far as there is memory for them, or
// none.
std::size_t CachingAllocator::begin_exchange(std::span<const LyingBlock> windows, bool to_host,
                                             std::vector<Exchange>& begun) {
  Exchange out;
  for (const LyingBlock& one : windows) {
    const auto to = memory_for(slabs_[windows_[one.first].slab].size, to_host);
    if (!to) break;
    out.windows.push_back(one);
    out.to.push_back(*to);
    out.size += Bytes(to->size);
  }
  if (out.to.empty()) return 0;
  const auto at = addresses_.take(out.size.value);
  out.at = at.value_or(0);
  const bool mapped = at && provider_.map_row(*at, row_of(out.to));
  if (mapped && provider_.copy(*at, windows_[windows.front().first].at, out.size)) {
    begun.push_back(std::move(out));
    return begun.back().to.size();
  }
  if (mapped) unmap_slabs(*at, out.to);
  if (at) addresses_.give(*at, out.size.value);
  for (const Slab& slab : out.to) give_up(slab);
  return 0;
}

void CachingAllocator::unmap_slabs(Address at, std::span<const Slab> slabs) {
  for (const Slab& slab : slabs) {
    provider_.unmap(at, Bytes(slab.size));
    at += static_cast<Address>(slab.size);
  }
}

// False: nothing changed.
bool CachingAllocator::finish_exchange(const Exchange& exchange, bool copied) {
  unmap_slabs(exchange.at, exchange.to);
  addresses_.give(exchange.at, exchange.size.value);
  bool mapped = false;
  if (copied) {
    const Address at = windows_[exchange.windows.front().first].at;
    std::vector<Slab> before;
    for (const LyingBlock& one : exchange.windows)
      before.push_back(slabs_[windows_[one.first].slab]);
    unmap_slabs(at, before);
    mapped = provider_.map_row(at, row_of(exchange.to));
    PLIMSOLL_CHECK(mapped || provider_.map_row(at, row_of(before)),
                   "caching allocator: what was unmapped cannot be mapped again");
  }
  for (std::size_t i = 0; i < exchange.to.size(); ++i) {
    if (mapped) {
      exchange_slab(exchange.windows[i], exchange.to[i]);
    } else {
      give_up(exchange.to[i]);
    }
  }
  return mapped;
}

std::vector<RowEntry> CachingAllocator::row_of(std::span<const Slab> slabs) {
  std::vector<RowEntry> out;
  for (const Slab& slab : slabs) out.push_back({slab.handle, Bytes(slab.size)});
  return out;
}

// The window's slab is another one now; the one before it is given back or kept for the next spill.
void CachingAllocator::exchange_slab(const LyingBlock& one, const Slab& to) {
  const Slab left = std::exchange(slabs_[windows_[one.first].slab], to);
  const Bytes size(left.size);
  if (left.on_host) {
    spare_host_.push_back(left);
    statistics_.spilled_bytes.subtract(size.value);
    statistics_.slabs.add(1);
    for (const BlockIndex id : blocks_in(one.first, one.second)) {
      if (blocks_[id].state != BlockState::kOnHost) continue;
      blocks_[id].spilled = false;
      join_and_insert(id);
    }
    return;
  }
  provider_.release(left.handle, size);
  statistics_.reserved_bytes.subtract(size.value);
  statistics_.slabs.subtract(1);
  statistics_.spilled_bytes.add(size.value);
}

// What of the block lies on the device is free as ever. What lies on the host must not be handed
// out: it leaves with its window once no live block uses that any more.
void CachingAllocator::free_spilled(BlockIndex id) {
  blocks_[id].epoch = arenas_[blocks_[id].arena]->epoch;
  const StreamId stream = arenas_[blocks_[id].arena]->stream;
  std::vector<LyingBlock> left;
  while (id != kNoBlock) {
    const WindowIndex first = pages_.window(blocks_[id].address);
    const bool on_host = slabs_[windows_[first].slab].on_host;
    const auto end_of = [&](WindowIndex window) {
      return windows_[window].at + static_cast<Address>(slabs_[windows_[window].slab].size);
    };
    Address end = end_of(first);
    while (!on_host && end < blocks_[id].end() &&
           !slabs_[windows_[pages_.window(end)].slab].on_host) {
      end = end_of(pages_.window(end));
    }
    BlockIndex rest = kNoBlock;
    if (end < blocks_[id].end()) {
      rest = blocks_.split(id, static_cast<std::int64_t>(end - blocks_[id].address));
      blocks_[rest].state = BlockState::kPending;  // not to be joined with
    }
    blocks_[id].spilled = on_host;
    if (on_host) {
      blocks_[id].state = BlockState::kOnHost;
      left.emplace_back(first, id);
    } else {
      join_and_insert(id);
    }
    id = rest;
  }
  std::int64_t closed = 0;
  for (const auto& [window, block] : left) closed += leave_host(window, block) ? 1 : 0;
  if (closed > 0) mark_groups_[next_mark_group_++] = {order_.record(stream), closed};
}

// Closes the window if nothing live is in it; its host memory serves the next spill, which waits
// for the device first.
bool CachingAllocator::leave_host(WindowIndex window, BlockIndex one) {
  const std::vector<BlockIndex> inside = blocks_in(window, one);
  const bool unused = std::all_of(inside.begin(), inside.end(), [&](BlockIndex id) {
    return blocks_[id].state == BlockState::kOnHost;
  });
  if (!unused) return false;
  const BlockIndex before = blocks_[inside.front()].before;
  const BlockIndex after = blocks_[inside.back()].after;
  if (before != kNoBlock) blocks_[before].after = kNoBlock;
  if (after != kNoBlock) blocks_[after].before = kNoBlock;
  for (const BlockIndex id : inside) blocks_.drop(id);
  const SlabIndex slab = windows_[window].slab;
  retired_.push_back({windows_[window].at, slabs_[slab].size, next_mark_group_});
  close_window(window);
  spare_host_.push_back(slabs_[slab]);
  drop_slab(slab);
  return true;
}

}  // namespace plimsoll::memory
