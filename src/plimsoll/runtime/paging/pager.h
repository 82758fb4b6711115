// Paging: more tensors than device memory, for a program that has no plan.
//
// Tensors are blocks of a virtual pool as large as they need. Every block has a place in host
// memory, the backing store; only what the next kernel touches has to be in device memory. The
// program tells the pager what it does, one launch after the other, and is told what to copy:
//
//   BlockId w = pager.create(bytes, Lifetime::kPersistent);
//   pager.begin_step();
//   moves = pager.begin_launch({{x, kRead}, {w, kRead}, {y, kWrite}});   copy these, then launch
//   ... launch, at pager.place(x), pager.place(w), pager.place(y)
//   moves = pager.end_launch();                                          copy these meanwhile
//   pager.forget(x);
//
// Policies, each with all of the one before it:
//   demand     copies what is missing when it is needed; what was used longest ago makes room
//   prefetch   after a step its launches are known: the operands of the next few are fetched while
//              the current ones run. What they need is not evicted
//   pre-evict  and room is made ahead: below a low-water mark what is old is written back and goes.
//              What had to go in the last step is written back as soon as it is written, and stays
//              until the room is needed
//   belady     and what makes room is what is needed again last, which the last step told; it keeps
//              no room beyond what it knows to be needed
// A step that does something else than the last one falls back to demand from there on, and is
// what the next one is held against (`mispredictions`).
//
// A pool that forgets knows which tensors are dead: they take no room and are never copied. One
// that does not (`forget_dead` false) keeps the blocks of dead tensors for the next ones of their
// size, as a caching allocator on managed memory does: dead bytes are written back when they are
// evicted, and fetched again before they are overwritten. That is what a driver has to do who sees
// pages and not tensors (`dead_evictions` counts it).
//
// A block that is not written to on the device is clean: its bytes in host memory stay good, and
// evicting it copies nothing.
//
// Invariants:
//  1. what is in device memory never exceeds the capacity (resident_map.h checks every placement);
//  2. during a launch its operands stay where they are;
//  3. a block that was written and is alive has its content in device memory, or at home.
// Pure bookkeeping: nothing is copied here, and what has to wait for what is told from the ranges
// alone (access_order.h). Failures: kDoesNotFit where the operands of one launch exceed the
// capacity; nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/memory/offset_allocator.h"
#include "plimsoll/runtime/paging/resident_map.h"

namespace plimsoll::runtime {

enum class PagingPolicy : std::uint8_t { kDemand, kPrefetch, kPreEvict, kBelady };
std::string_view name(PagingPolicy policy);  // "demand", "prefetch", "pre-evict", "belady"
std::optional<PagingPolicy> paging_policy_from(std::string_view text);

struct PagingOptions {
  PagingPolicy policy = PagingPolicy::kDemand;
  Bytes capacity;
  Bytes alignment = Bytes(64);
  bool forget_dead = true;
  int prefetch = 16;           // launches ahead
  double low_water = 1. / 16;  // of the capacity, kept free by pre-evict
  // Of pre-evict and belady; chosen_options() of rehearsal.h decides. What left in the last step is
  // written home as soon as it is written; and room that stays free for so many launches is filled
  // from ahead, but for a share of the capacity.
  bool write_behind = true;
  int far_prefetch = 0;
  double far_low_water = 1. / 8;
};

enum class BlockAccess : std::uint8_t { kRead, kWrite, kUpdate };
enum class Lifetime : std::uint8_t { kPersistent, kTransient };  // over steps, or within one

struct BlockUse {
  BlockId block;
  BlockAccess access = BlockAccess::kRead;
  bool operator==(const BlockUse&) const = default;
};

struct PageMove {
  enum class Kind : std::uint8_t { kOut, kIn };
  Kind kind = Kind::kOut;
  BlockId block;
  Offset device;
  Offset host;
  Bytes bytes;
  // Nobody thought of it before the launch that needs it: it begins when the one before is over.
  bool fault = false;
};

struct PagingCounts {
  Bytes in;
  Bytes out;
  std::int64_t launches = 0;
  std::int64_t faults = 0;          // operands that a launch had to wait for
  std::int64_t stalls = 0;          // launches that had to wait for a copy of their own
  std::int64_t evictions = 0;       // blocks that made room
  std::int64_t dead_evictions = 0;  // of these, written back although nobody would read them
  Bytes dead_out;
  std::int64_t prefetches = 0;
  std::int64_t wasted_prefetches = 0;  // evicted before they were used
  std::int64_t mispredictions = 0;     // steps that left the path of the last one
  std::int64_t repacks = 0;            // launches for which everything else had to go

  PagingCounts since(const PagingCounts& before) const;
  bool operator==(const PagingCounts&) const = default;
};

// The bytes of the virtual pool that a launch touches.
using VirtualLaunch = std::vector<Interval<std::int64_t>>;

// What an executor that pages says of its last step.
struct PagingReport {
  std::string policy;
  bool forget_dead = true;
  Bytes capacity;
  Bytes pool;  // virtual, backed by host memory
  Bytes peak;  // of device memory, of the whole run
  PagingCounts step;
  std::vector<VirtualLaunch> launches;  // of a step, in order
  // What nobody who only copies can do without, one after the other (rehearsal.h).
  Bytes forced_out;
  Bytes forced_in;
};

class Pager {
 public:
  explicit Pager(const PagingOptions& options);

  BlockId create(Bytes bytes, Lifetime lifetime);
  void forget(BlockId block);

  void begin_step();
  // Every block is named once. The answers hold until the next call.
  Result<std::span<const PageMove>> begin_launch(std::span<const BlockUse> uses);
  std::span<const PageMove> end_launch();

  // Between steps: its place in host memory is about to be read, for which it may have to be copied
  // there; or was written by somebody else.
  std::optional<PageMove> bring_home(BlockId block);
  void overwritten(BlockId block);

  Offset place(BlockId block) const;  // in device memory, during a launch
  std::optional<Offset> resident_at(BlockId block) const { return blocks_[block.index()].device; }
  Offset home(BlockId block) const { return blocks_[block.index()].host; }
  Bytes bytes(BlockId block) const { return blocks_[block.index()].bytes; }

  const PagingCounts& counts() const { return counts_; }
  Bytes peak() const { return resident_.peak(); }
  Bytes virtual_bytes() const { return homes_.high_water(); }

  // The virtual pool must be known before host memory is taken for it.
  Bytes rounded(Bytes bytes) const;

 private:
  struct Block {
    Bytes bytes;  // rounded
    Offset host;
    std::optional<Offset> device;
    Lifetime lifetime = Lifetime::kTransient;
    bool alive = true;
    bool dirty = false;       // the device's bytes are newer
    bool at_home = false;     // host memory has its bytes, or had: of dead tensors too
    bool prefetched = false;  // and not used yet
    bool cleaned = false;     // written home ahead, since it was written to
    std::int64_t key = 0;     // by which it is known in the next step
    std::int64_t last_use = 0;
    std::int64_t last_write = -1;  // launch of the step in which it was written to
    std::int64_t next_use = 0;     // launch of this step, where known
    std::int64_t pinned = -1;      // by the launch of this number
    std::int64_t wanted_by = -1;   // soon: a launch within the next few ...
    std::int64_t wanted_at = -1;   // ... as it was found out at this launch
  };
  struct LearnedUse {
    std::int64_t key = 0;
    BlockAccess access = BlockAccess::kRead;
    std::int64_t next = 0;  // launch that uses it next, in this step or the one after
    bool last = false;      // of a transient: dead behind this launch
    Bytes bytes;
    bool goes = false;  // what it writes had to leave before it was written again
  };
  using LearnedLaunch = std::vector<LearnedUse>;
  // The room there will be, on the way to a launch and there.
  struct Ahead {
    std::int64_t launch = 0;
    Bytes low;
    Bytes left;
    bool evicts = true;  // what is needed later may make room
  };

  Block& at(BlockId block) { return blocks_[block.index()]; }
  bool looks_ahead() const { return options_.policy >= PagingPolicy::kPrefetch && known_; }
  bool belady() const { return options_.policy == PagingPolicy::kBelady && known_; }

  void learn();
  void follow(std::span<const BlockUse> uses);
  BlockId block_of(std::int64_t key) const;

  ResidentMap::Price price_at_fault();
  ResidentMap::Price price_ahead(std::int64_t launch);
  void evict(BlockId block, bool fault);
  Status make_resident(BlockId block, BlockAccess access, std::span<const BlockUse> uses);
  Status repack(std::span<const BlockUse> uses);
  void settle(BlockId block, Offset at, BlockAccess access, bool fault);
  bool copies_in(const Block& block, BlockAccess access) const;
  void prefetch();
  bool fetch_ahead(BlockId block, Ahead& ahead);
  bool evict_ahead(Bytes bytes, Ahead& ahead);
  void evict_for(BlockId victim, Ahead& ahead);
  std::optional<Offset> room_ahead(Bytes bytes, bool far_end, Ahead& ahead);
  Bytes share_of_capacity(double share) const;
  void keep_low_water();
  void note_departure(const Block& block);
  void write_behind();
  void write_home(BlockId block, bool fault);

  PagingOptions options_;
  ResidentMap resident_;
  memory::BestFitAllocator homes_;
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;                                  // ids to use again
  std::unordered_map<std::int64_t, std::vector<BlockId>> dead_;  // by bytes, when not forgetting
  std::int64_t persistents_ = 0;
  std::vector<BlockId> persistent_of_;  // by number
  std::vector<BlockId> ordinal_;        // of this step: the blocks it created, in order
  std::vector<LearnedLaunch> learned_;
  std::vector<LearnedLaunch> recording_;
  bool known_ = false;       // this step has done what the last one did
  std::int64_t launch_ = 0;  // of this step
  std::int64_t now_ = 0;     // launches ever
  bool launch_stalled_ = false;
  std::vector<PageMove> moves_;
  PagingCounts counts_;
};

}  // namespace plimsoll::runtime
