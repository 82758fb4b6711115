// What an allocator says about itself: statistics, segments, the text of a refusal, its own check.
#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/checked.h"
#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/caching_parts.h"

namespace plimsoll::memory {

AllocatorStatistics CachingAllocator::counts() const {
  const std::lock_guard guard(lock_);
  return statistics_;
}

AllocatorStatistics CachingAllocator::statistics() const {
  const std::lock_guard guard(lock_);
  AllocatorStatistics out = statistics_;
  for (BlockIndex id = 1; id < blocks_.size(); ++id) {
    const Block& block = blocks_[id];
    if (!block.idle()) continue;
    out.idle_bytes += Bytes(block.size);
    ++out.idle_blocks;
    out.largest_idle = std::max(out.largest_idle, Bytes(block.size));
  }
  return out;
}

void CachingAllocator::reset_peaks() {
  const std::lock_guard guard(lock_);
  for (SizeClassTally* sizes : {&statistics_.all, &statistics_.small, &statistics_.large}) {
    sizes->blocks.reset_peak();
    sizes->bytes.reset_peak();
    sizes->requested.reset_peak();
  }
  statistics_.reserved_bytes.reset_peak();
  statistics_.slabs.reset_peak();
  statistics_.pending_bytes.reset_peak();
}

void CachingAllocator::reset_totals() {
  const std::lock_guard guard(lock_);
  for (SizeClassTally* sizes : {&statistics_.all, &statistics_.small, &statistics_.large}) {
    sizes->blocks.reset_totals();
    sizes->bytes.reset_totals();
    sizes->requested.reset_totals();
  }
  statistics_.reserved_bytes.reset_totals();
  statistics_.slabs.reset_totals();
  statistics_.pending_bytes.reset_totals();
  statistics_.retries = 0;
  statistics_.out_of_memory = 0;
}

std::vector<SegmentView> CachingAllocator::segments() const {
  const std::lock_guard guard(lock_);
  std::vector<SegmentView> out;
  for (BlockIndex id = 1; id < blocks_.size(); ++id) {
    const Block& first = blocks_[id];
    if (first.state == BlockState::kNone || first.before != kNoBlock) continue;
    SegmentView segment;
    segment.address = first.address;
    segment.stream = arenas_[first.arena]->stream;
    segment.pool = pools_[arenas_[first.arena]->pool].id;
    for (BlockIndex at = id; at != kNoBlock; at = blocks_[at].after) {
      const Block& block = blocks_[at];
      segment.size += Bytes(block.size);
      segment.blocks.push_back({block.address, Bytes(block.size), Bytes(block.requested),
                                block.state, arenas_[block.arena]->stream});
    }
    out.push_back(std::move(segment));
  }
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return out;
}

std::optional<BlockView> CachingAllocator::find(Address inside) const {
  for (const SegmentView& segment : segments()) {
    if (inside < segment.address ||
        inside - segment.address >= static_cast<Address>(segment.size.value))
      continue;
    for (const BlockView& block : segment.blocks) {
      const bool within = inside >= block.address &&
                          inside - block.address < static_cast<Address>(block.size.value);
      if (within && block.state == BlockState::kLive) return block;
    }
  }
  return std::nullopt;
}

std::string CachingAllocator::out_of_memory_report(Bytes size, StreamId stream) const {
  const AllocatorStatistics now = statistics();
  const std::lock_guard guard(lock_);
  std::int64_t in_pools = 0;
  std::int64_t with_others = 0;
  std::int64_t largest = 0;
  std::int64_t movable = 0;  // slabs that lie wholly free
  for (BlockIndex id = 1; id < blocks_.size(); ++id) {
    const Block& block = blocks_[id];
    if (!block.idle()) continue;
    const Arena& arena = *arenas_[block.arena];
    if (arena.pool != 0) in_pools += block.size;
    if (arena.pool == 0 && arena.stream != stream) with_others += block.size;
    if (arena.pool != 0) continue;
    largest = std::max(largest, block.size);
  }
  for (const Survey::IdleSlab& idle : survey(free_runs(0)).idle) movable += slabs_[idle.slab].size;
  std::string text = fmt::format(
      "tried to allocate {}; {} is held from the device ({}{}), {} of it is in use, {} is free ({} "
      "of "
      "it in whole slabs, which can be moved together; largest piece {})",
      human(size), human(Bytes(now.reserved_bytes.current)),
      provider_.capacity().value > 0 ? "capacity " + human(provider_.capacity()) : provider_.name(),
      options_.limit == Bytes::max() ? "" : ", limit " + human(options_.limit),
      human(Bytes(now.all.bytes.current)), human(now.idle_bytes), human(Bytes(movable)),
      human(Bytes(largest)));
  if (now.spilled_bytes.current > 0) {
    text += fmt::format("; {} of what is in use lies in host memory (spilled)",
                        human(Bytes(now.spilled_bytes.current)));
  }
  if (now.pending_bytes.current > 0) {
    text += fmt::format("; {} is freed but waits for other streams (record_stream)",
                        human(Bytes(now.pending_bytes.current)));
  }
  if (in_pools > 0) {
    text += fmt::format(
        "; {} lies idle in pools of captured graphs: release graphs that are not "
        "replayed any more",
        human(Bytes(in_pools)));
  }
  if (with_others > 0 && !options_.lend) {
    text +=
        fmt::format("; {} lies idle on other streams: lending is off", human(Bytes(with_others)));
  }
  const std::int64_t missing = round_up(size.value - std::min(movable, size.value), kGranule);
  text +=
      fmt::format(". It would fit with {} less in use", human(Bytes(std::max(missing, kGranule))));
  if (options_.limit != Bytes::max()) text += ", or with a higher limit";
  return text + ".";
}

std::string CachingAllocator::verify() const {
  const std::lock_guard guard(lock_);
  std::int64_t live = 0;
  std::vector<std::int64_t> covered(windows_.size(), 0);
  for (BlockIndex id = 1; id < blocks_.size(); ++id) {
    const Block& block = blocks_[id];
    if (block.state == BlockState::kNone) continue;
    if (block.state == BlockState::kLive) live += block.size;
    if (block.size <= 0 || block.size % kGranule != 0) return fmt::format("block {}: odd size", id);
    for (Address at = block.address; at < block.end();) {
      const WindowIndex window = pages_.window(at);
      if (window == kNoWindow) return fmt::format("block {} is not mapped", id);
      const std::int64_t size = slabs_[windows_[window].slab].size;
      if (slabs_[windows_[window].slab].on_host && !block.spilled) {
        return fmt::format("block {} is in host memory and may be handed out", id);
      }
      const Address stop = std::min(block.end(), windows_[window].at + static_cast<Address>(size));
      covered[window] += static_cast<std::int64_t>(stop - at);
      at = stop;
    }
    if (block.after == kNoBlock) continue;
    const Block& after = blocks_[block.after];
    if (after.before != id || after.address != block.end()) {
      return fmt::format("blocks {} and {} are not neighbours", id, block.after);
    }
    if (block.state == BlockState::kFree && after.state == BlockState::kFree &&
        block.arena == after.arena) {
      return fmt::format("blocks {} and {} should be joined", id, block.after);
    }
  }
  if (live != statistics_.all.bytes.current) return "live bytes do not add up";
  return verify_windows(covered);
}

// Every byte of every slab belongs to exactly one block.
std::string CachingAllocator::verify_windows(const std::vector<std::int64_t>& covered) const {
  std::vector<std::int64_t> used(slabs_.size(), 0);
  for (WindowIndex id = 1; id < windows_.size(); ++id) {
    const Window& window = windows_[id];
    if (window.slab == kNoSlab) continue;
    if (pages_.window(window.at) != id) return fmt::format("window {} is not where it says", id);
    if (covered[id] != window.covered || covered[id] == 0) {
      return fmt::format("blocks cover {} of {} bytes in window {}", covered[id], window.covered,
                         id);
    }
    used[window.slab] += window.covered;
  }
  std::int64_t held = 0;
  std::int64_t spilled = 0;
  for (SlabIndex id = 1; id < slabs_.size(); ++id) {
    (slabs_[id].on_host ? spilled : held) += slabs_[id].size;
    if (used[id] != slabs_[id].size) {
      return fmt::format("blocks cover {} of {} bytes of slab {}", used[id], slabs_[id].size, id);
    }
  }
  if (spilled != statistics_.spilled_bytes.current) return "spilled bytes do not add up";
  return held == statistics_.reserved_bytes.current ? "" : "reserved bytes do not add up";
}

}  // namespace plimsoll::memory
