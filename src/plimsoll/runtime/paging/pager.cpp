#include "plimsoll/runtime/paging/pager.h"

#include <algorithm>
#include <array>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/check.h"
#include "plimsoll/base/checked.h"

namespace plimsoll::runtime {
namespace {

constexpr std::int64_t kVirtual = std::int64_t{1} << 46;
constexpr std::int64_t kNever = std::int64_t{1} << 40;
// Of what is wanted soon: dearer than anything that is not, the nearer the dearer.
constexpr std::int64_t kWanted = std::int64_t{1} << 50;

constexpr std::array<std::string_view, 4> kPolicyNames = {"demand", "prefetch", "pre-evict",
                                                          "belady"};

// Persistent blocks below zero, the others as the step creates them.
std::int64_t key_of_persistent(std::int64_t number) {
  return -1 - number;
}

bool reads(BlockAccess access) {
  return access != BlockAccess::kWrite;
}

}  // namespace

std::string_view name(PagingPolicy policy) {
  return kPolicyNames[static_cast<std::size_t>(policy)];
}

std::optional<PagingPolicy> paging_policy_from(std::string_view text) {
  for (std::size_t p = 0; p < kPolicyNames.size(); ++p) {
    if (kPolicyNames[p] == text) return static_cast<PagingPolicy>(p);
  }
  return std::nullopt;
}

PagingCounts PagingCounts::since(const PagingCounts& before) const {
  PagingCounts difference = *this;
  difference.in -= before.in;
  difference.out -= before.out;
  difference.launches -= before.launches;
  difference.faults -= before.faults;
  difference.stalls -= before.stalls;
  difference.evictions -= before.evictions;
  difference.dead_evictions -= before.dead_evictions;
  difference.dead_out -= before.dead_out;
  difference.prefetches -= before.prefetches;
  difference.wasted_prefetches -= before.wasted_prefetches;
  difference.mispredictions -= before.mispredictions;
  difference.repacks -= before.repacks;
  return difference;
}

// Blocks lie at either end of it, so both must be aligned.
Pager::Pager(const PagingOptions& options)
    : options_(options),
      resident_(Bytes(options.capacity.value / options.alignment.value * options.alignment.value)),
      homes_(Bytes(kVirtual)) {}

Bytes Pager::rounded(Bytes bytes) const {
  return Bytes(round_up(std::max<std::int64_t>(bytes.value, 1), options_.alignment.value));
}

BlockId Pager::create(Bytes bytes, Lifetime lifetime) {
  const Bytes whole = rounded(bytes);
  BlockId out;
  if (auto& dead = dead_[whole.value]; lifetime == Lifetime::kTransient && !dead.empty()) {
    out = dead.back();
    dead.pop_back();
    at(out).alive = true;
  } else {
    if (unused_.empty()) {
      out = BlockId(blocks_.size());
      blocks_.emplace_back();
    } else {
      out = unused_.back();
      unused_.pop_back();
    }
    const std::optional<Offset> home = homes_.allocate(whole);
    PLIMSOLL_CHECK(home.has_value(), "64 TiB of tensors");
    at(out) = Block{};
    at(out).bytes = whole;
    at(out).host = *home;
    at(out).lifetime = lifetime;
  }
  if (lifetime == Lifetime::kPersistent) {
    at(out).key = key_of_persistent(persistents_++);
    persistent_of_.push_back(out);
  } else {
    at(out).key = static_cast<std::int64_t>(ordinal_.size());
    ordinal_.push_back(out);
  }
  at(out).next_use = kNever;
  return out;
}

void Pager::forget(BlockId id) {
  Block& block = at(id);
  PLIMSOLL_CHECK(block.alive && block.lifetime == Lifetime::kTransient,
                 "a block was forgotten that is not there, or stays");
  block.alive = false;
  block.next_use = kNever;
  if (!options_.forget_dead) {
    dead_[block.bytes.value].push_back(id);
    return;
  }
  if (block.device) resident_.remove(*block.device);
  block.device.reset();
  homes_.free(block.host);
  unused_.push_back(id);
}

BlockId Pager::block_of(std::int64_t key) const {
  if (key < 0) return persistent_of_[static_cast<std::size_t>(-1 - key)];
  const auto ordinal = static_cast<std::size_t>(key);
  return ordinal < ordinal_.size() ? ordinal_[ordinal] : BlockId();
}

// When every operand is used next, from the back; what is used no more in this step is used in the
// next one, or dead.
void Pager::learn() {
  const auto launches = static_cast<std::int64_t>(learned_.size());
  std::unordered_map<std::int64_t, std::int64_t> next;
  for (std::int64_t l = launches - 1; l >= 0; --l) {
    for (const LearnedUse& use : learned_[static_cast<std::size_t>(l)]) {
      if (use.key < 0) next[use.key] = l + launches;
    }
  }
  for (const auto& [key, first] : next) at(block_of(key)).next_use = first - launches;
  for (std::int64_t l = launches - 1; l >= 0; --l) {
    for (LearnedUse& use : learned_[static_cast<std::size_t>(l)]) {
      const auto found = next.find(use.key);
      use.next = found == next.end() ? kNever : found->second;
      use.last = found == next.end();
      next[use.key] = l;
    }
  }
}

void Pager::begin_step() {
  ordinal_.clear();
  launch_ = 0;
  if (!recording_.empty()) {
    learned_ = std::move(recording_);
    recording_.clear();
    learn();
  }
  known_ = !learned_.empty();
}

// Writes down what this launch uses, and sees whether it is what the last step did here.
void Pager::follow(std::span<const BlockUse> uses) {
  LearnedLaunch launch;
  launch.reserve(uses.size());
  for (const BlockUse& use : uses)
    launch.push_back({at(use.block).key, use.access, 0, false, at(use.block).bytes, false});
  const auto number = static_cast<std::size_t>(launch_);
  const auto same = [](const LearnedUse& a, const LearnedUse& b) {
    return a.key == b.key && a.access == b.access && a.bytes == b.bytes;
  };
  if (known_ && (number >= learned_.size() ||
                 !std::equal(launch.begin(), launch.end(), learned_[number].begin(),
                             learned_[number].end(), same))) {
    known_ = false;
    ++counts_.mispredictions;
  }
  if (known_) {
    for (std::size_t u = 0; u < uses.size(); ++u)
      at(uses[u].block).next_use = learned_[number][u].next;
  }
  recording_.push_back(std::move(launch));
}

ResidentMap::Price Pager::price_at_fault() {
  return [this](BlockId id) -> std::int64_t {
    const Block& block = at(id);
    if (block.pinned == now_) return ResidentMap::kStays;
    if (belady()) return -block.next_use;
    if (looks_ahead() && block.wanted_at == now_ - 1 && block.wanted_by > launch_)
      return kWanted - block.wanted_by;
    return block.last_use;
  };
}

void Pager::evict(BlockId id, bool fault) {
  Block& block = at(id);
  PLIMSOLL_CHECK(block.device.has_value(), "a block was evicted that is not there");
  if (block.dirty || block.cleaned) note_departure(block);
  if (block.dirty) write_home(id, fault);
  block.cleaned = false;
  ++counts_.evictions;
  counts_.wasted_prefetches += block.prefetched ? 1 : 0;
  block.prefetched = false;
  resident_.remove(*block.device);
  block.device.reset();
}

void Pager::write_home(BlockId id, bool fault) {
  Block& block = at(id);
  moves_.push_back({PageMove::Kind::kOut, id, *block.device, block.host, block.bytes, fault});
  counts_.out += block.bytes;
  block.at_home = true;
  block.dirty = false;
  if (block.alive) return;
  ++counts_.dead_evictions;
  counts_.dead_out += block.bytes;
}

// So that the next step writes it home as soon as it is written. What was written in the last step
// is found there.
void Pager::note_departure(const Block& block) {
  const auto note = [&](std::vector<LearnedLaunch>& launches) {
    if (block.last_write < 0 || block.last_write >= static_cast<std::int64_t>(launches.size()))
      return false;
    for (LearnedUse& use : launches[static_cast<std::size_t>(block.last_write)]) {
      if (use.key != block.key || use.access == BlockAccess::kRead) continue;
      use.goes = true;
      return true;
    }
    return false;
  };
  if (!note(recording_)) note(learned_);
}

// What the launch that is over has written, and what left before it was written again in the last
// step, begins to leave now; it stays where it is until room is needed.
void Pager::write_behind() {
  if (!known_ || !options_.forget_dead || launch_ == 0) return;
  for (const LearnedUse& use : learned_[static_cast<std::size_t>(launch_ - 1)]) {
    if (!use.goes) continue;
    const BlockId id = block_of(use.key);
    if (!id.valid() || !at(id).alive || !at(id).device || !at(id).dirty) continue;
    write_home(id, false);
    at(id).cleaned = true;
  }
}

// What is overwritten whole need not come first; but who does not know what is dead has to fetch
// what lay there.
bool Pager::copies_in(const Block& block, BlockAccess access) const {
  return block.at_home && (reads(access) || !options_.forget_dead);
}

void Pager::settle(BlockId id, Offset place, BlockAccess access, bool fault) {
  Block& block = at(id);
  block.device = place;
  resident_.place(id, place, block.bytes);
  PLIMSOLL_CHECK(!reads(access) || block.at_home, "a block is read that was never written");
  if (!copies_in(block, access)) return;
  moves_.push_back({PageMove::Kind::kIn, id, place, block.host, block.bytes, fault});
  counts_.in += block.bytes;
  if (fault) {
    ++counts_.faults;
    launch_stalled_ = true;
  }
}

Status Pager::make_resident(BlockId id, BlockAccess access, std::span<const BlockUse> uses) {
  if (at(id).device) return {};
  const bool far_end = at(id).lifetime == Lifetime::kPersistent;
  if (const auto hole = resident_.hole(at(id).bytes, far_end)) {
    settle(id, *hole, access, true);
    return {};
  }
  const auto room = resident_.room(at(id).bytes, far_end, price_at_fault());
  if (!room) return repack(uses);
  const Bytes before = counts_.out;
  for (const BlockId victim : room->evicted) evict(victim, true);
  if (counts_.out != before) launch_stalled_ = true;
  settle(id, room->at, access, true);
  return {};
}

// The operands lie so that there is no room between them: everything goes, and they are set one
// behind the other.
Status Pager::repack(std::span<const BlockUse> uses) {
  Bytes all;
  for (const BlockUse& use : uses) all += at(use.block).bytes;
  if (all > resident_.capacity())
    return fail(ErrorCode::kDoesNotFit, "its operands take {} at once, the capacity is {}",
                human(all), human(resident_.capacity()));
  ++counts_.repacks;
  launch_stalled_ = true;
  for (const BlockId id : resident_.blocks()) evict(id, true);
  Offset end;
  for (const BlockUse& use : uses) {
    settle(use.block, end, use.access, true);
    end = end + at(use.block).bytes;
  }
  return {};
}

Result<std::span<const PageMove>> Pager::begin_launch(std::span<const BlockUse> uses) {
  ++now_;
  moves_.clear();
  launch_stalled_ = false;
  follow(uses);
  std::vector<BlockUse> missing;
  for (const BlockUse& use : uses) {
    PLIMSOLL_CHECK(at(use.block).alive, "a launch uses a block that is dead");
    at(use.block).pinned = now_;
    if (!at(use.block).device) missing.push_back(use);
  }
  std::stable_sort(missing.begin(), missing.end(), [&](const BlockUse& a, const BlockUse& b) {
    return at(a.block).bytes > at(b.block).bytes;
  });
  for (const BlockUse& use : missing)
    PLIMSOLL_RETURN_IF_ERROR(make_resident(use.block, use.access, uses));
  for (const BlockUse& use : uses) {
    Block& block = at(use.block);
    block.last_use = now_;
    block.prefetched = false;
    if (use.access == BlockAccess::kRead) continue;
    block.dirty = true;
    block.cleaned = false;
    block.last_write = launch_;
  }
  ++counts_.launches;
  counts_.stalls += launch_stalled_ ? 1 : 0;
  return std::span<const PageMove>(moves_);
}

std::span<const PageMove> Pager::end_launch() {
  moves_.clear();
  ++launch_;
  if (options_.policy >= PagingPolicy::kPreEvict && options_.write_behind) write_behind();
  if (looks_ahead()) prefetch();
  if (options_.policy == PagingPolicy::kPreEvict) keep_low_water();
  return moves_;
}

// What may make room for what launch `launch` needs.
ResidentMap::Price Pager::price_ahead(std::int64_t launch) {
  return [this, launch](BlockId id) -> std::int64_t {
    const Block& block = at(id);
    if (block.pinned == now_) return ResidentMap::kStays;
    if (belady()) return block.next_use > launch ? -block.next_use : ResidentMap::kStays;
    const bool wanted = looks_ahead() && block.wanted_at == now_;
    return wanted ? ResidentMap::kStays : block.last_use;
  };
}

// Walks the next launches as the last step did them, with the room that there will be: less what
// they fetch and, where room is made ahead, less what they create and more what dies. `left` is
// what remains at the launch that is looked at, `low` the least on the way there: fetching now
// takes room from all launches in between. Where that is too little it waits; where too little is
// left at the launch itself something has to go, and goes now. It ends where that would be needed
// sooner. Beyond `prefetch` launches nothing makes room: what is free beside a reserve is filled.
void Pager::prefetch() {
  const auto end = static_cast<std::size_t>(std::min<std::int64_t>(
      launch_ + options_.prefetch, static_cast<std::int64_t>(learned_.size())));
  for (auto l = static_cast<std::size_t>(launch_); l < end; ++l) {
    for (const LearnedUse& use : learned_[l]) {
      const BlockId id = block_of(use.key);
      if (!id.valid() || !at(id).alive || at(id).wanted_at == now_) continue;
      at(id).wanted_at = now_;
      at(id).wanted_by = static_cast<std::int64_t>(l);
    }
  }
  const bool makes_room = options_.policy >= PagingPolicy::kPreEvict && options_.forget_dead;
  const auto far = static_cast<std::size_t>(
      std::min<std::int64_t>(launch_ + (makes_room ? options_.far_prefetch : 0),
                             static_cast<std::int64_t>(learned_.size())));
  Ahead ahead;
  ahead.left = ahead.low = resident_.capacity() - resident_.in_use();
  for (auto l = static_cast<std::size_t>(launch_); l < std::max(end, far); ++l) {
    ahead.launch = static_cast<std::int64_t>(l);
    ahead.evicts = l < end;
    for (const LearnedUse& use : learned_[l]) {
      const BlockId id = block_of(use.key);
      const bool exists = id.valid() && at(id).alive;
      if (exists && at(id).device) continue;
      if (exists && copies_in(at(id), use.access)) {
        if (!fetch_ahead(id, ahead)) return;
      } else if (makes_room && use.access == BlockAccess::kWrite) {
        if (!evict_ahead(use.bytes, ahead)) return;
        ahead.left -= use.bytes;
        ahead.low = std::min(ahead.low, ahead.left);
        if (ahead.launch == launch_ && !room_ahead(use.bytes, false, ahead)) return;
      }
    }
    for (const LearnedUse& use : learned_[l]) {
      if (use.last && makes_room) ahead.left += use.bytes;
    }
  }
}

// Until so much is left.
bool Pager::evict_ahead(Bytes bytes, Ahead& ahead) {
  const ResidentMap::Price price = price_ahead(ahead.launch);
  while (ahead.left < bytes) {
    if (!ahead.evicts) return false;
    const std::optional<BlockId> victim = resident_.cheapest(price);
    if (!victim) return false;
    evict_for(*victim, ahead);
  }
  return true;
}

void Pager::evict_for(BlockId victim, Ahead& ahead) {
  ahead.left += at(victim).bytes;
  ahead.low += at(victim).bytes;
  evict(victim, false);
}

// One range of so many bytes.
std::optional<Offset> Pager::room_ahead(Bytes bytes, bool far_end, Ahead& ahead) {
  if (const auto hole = resident_.hole(bytes, far_end)) return hole;
  if (!ahead.evicts) return std::nullopt;
  const auto room = resident_.room(bytes, far_end, price_ahead(ahead.launch));
  if (!room) return std::nullopt;
  for (const BlockId victim : room->evicted) evict_for(victim, ahead);
  return room->at;
}

bool Pager::fetch_ahead(BlockId id, Ahead& ahead) {
  const Bytes bytes = at(id).bytes;
  if (!evict_ahead(bytes, ahead)) return false;
  const Bytes kept = ahead.evicts ? Bytes(0) : share_of_capacity(options_.far_low_water);
  if (ahead.low < bytes + kept) return false;
  const auto place = room_ahead(bytes, at(id).lifetime == Lifetime::kPersistent, ahead);
  if (!place) return false;
  ahead.left -= bytes;
  ahead.low -= bytes;
  settle(id, *place, BlockAccess::kRead, false);
  at(id).prefetched = true;
  ++counts_.prefetches;
  return true;
}

Bytes Pager::share_of_capacity(double share) const {
  return Bytes(static_cast<std::int64_t>(share * static_cast<double>(resident_.capacity().value)));
}

void Pager::keep_low_water() {
  const Bytes wanted = rounded(share_of_capacity(options_.low_water));
  if (resident_.capacity() - resident_.in_use() >= wanted) return;
  const auto room = resident_.room(wanted, false, price_ahead(launch_ + options_.prefetch));
  if (!room) return;
  for (const BlockId victim : room->evicted) evict(victim, false);
}

std::optional<PageMove> Pager::bring_home(BlockId id) {
  Block& block = at(id);
  if (!block.device || !block.dirty) return std::nullopt;
  block.dirty = false;
  block.at_home = true;
  return PageMove{PageMove::Kind::kOut, id, *block.device, block.host, block.bytes, true};
}

void Pager::overwritten(BlockId id) {
  Block& block = at(id);
  if (block.device) resident_.remove(*block.device);
  block.device.reset();
  block.dirty = false;
  block.prefetched = false;
  block.cleaned = false;
  block.at_home = true;
}

Offset Pager::place(BlockId block) const {
  const auto& device = blocks_[block.index()].device;
  PLIMSOLL_CHECK(device.has_value(), "a block has no place in device memory");
  return *device;
}

}  // namespace plimsoll::runtime
