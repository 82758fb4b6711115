// The caching allocator of a device: pools -> slabs -> blocks, on any SlabProvider.
//
// What it is for: a device's own allocation call costs 30-250 us and may stall the device; a
// training step makes thousands. So memory is taken from the device once and recycled, in the order
// of the streams that use it, without the host ever waiting.
//
// How a request is served, each step tried only when the one before found nothing:
//   1. the block the stream freed last, if it has exactly this size;
//   2. best fit among the stream's free blocks (fit_index.h), cut at the end that leaves more whole
//      pages free;
//   3. frees that other streams have passed by now are taken back, and 2 again;
//   4. free blocks of other streams, alone or as neighbours joined, lent with one wait per lender
//      unless the borrower is known to be behind that free already;
//   5. whole slabs that lie free anywhere are mapped a second time, at addresses behind the best
//      free tail, and what is missing is created new: never more than the missing pages. Before
//      anything is created, the new stretch may begin with the free end of one slab and end with
//      the free front of another. For sizes that do not come back moving is rationed: they pay
//      with memory before they pay with time;
//   6. the device refuses: wait for pending frees, one mark after the other, each followed by 3-5;
//   7. refuse, with everything as it was before.
// Nothing separates small and large requests: both live in the same slabs, so half a page left by a
// large block holds small ones. One kept block is enough for a loop that frees and allocates the
// same size; whole stacks of them would keep blocks from joining (docs/allocator.md, Costs).
//
// How large a new slab is: at most an eighth of the request and a 1024th of what is held, beyond 3
// GiB a quarter and a 640th. A slab can move only when all of it is free, so large ones under small
// blocks waste memory and small ones under large blocks waste map calls.
//
// Why a slab can be moved at once: the work that used it was queued before the free, on a stream
// the borrower is ordered behind, and both mappings reach the same bytes. Only unmapping the old
// address must wait until the host sees that work done; that is put off until many have gathered.
//
//   example (2 MiB pages, one stream):  a = 30 MiB, b = 30, c = 30, free a, free c, want 50:
//     |a 30 free|b 30|c 30 free|     no free block has 50; c is the tail, 20 are missing;
//     a's slabs (16 + 8 + 4 + 2) give 16 + 4, mapped behind c: nothing is taken from the device.
//
// Windows. A window is one mapping of a slab. Usually a slab has one; a slab whose end was free and
// now begins another stretch has two, and different blocks use different bytes of it through each:
//     slab S  |####....| at A |#### | at B | ....|new pages| # and . are two blocks
// Without this the ends of blocks that are no multiple of 2 MiB leave halves of pages behind (docs/
// allocator.md says what it gains). It is done only to save memory that would be new, at ends of
// chains.
//
// Streams. A free block belongs to the arena (pool x stream) in which it was freed. Each arena
// counts epochs; recording a mark closes one. `covered` says up to which epoch of arena A arena B
// is ordered behind, so a second loan from the same epoch costs no wait. record_stream() makes a
// free wait for marks of the extra streams. Private pools (captured graphs) never lend and never
// borrow.
//
// Spilling. spill() copies slabs that are filled by the blocks it is told to host memory and maps
// that in their place; restore() does the reverse. Addresses stay, so a kernel that reads them all
// the same is slow, not wrong, and what was held of the device is free for others. Only slabs that
// the blocks fill from end to end move: a slab of which others use a part stays.
//
//   slabs of 4:  |aaaa|aabb|bbbb|b...|     spill a: 1 slab;  a and b: 3;  the last has a free part
//
// Invariants: (1) blocks of a chain are contiguous in address and mapped; (2) no two neighbours
// that are kFree belong to the same arena; (3) every byte of a slab is covered by one block through
// one window, and a window that covers none is retired; (4) reserved bytes are the sum of slabs
// held of the device; (5) after a refusal 1-4 hold and no byte was lost; (6) host memory is only in
// windows that blocks cover which are spilled and not free.
//
// Cost: step 1 about 10 ns, 2 some 30; 3 and 4 linear in the number of free blocks; 5 what the
// device's map call costs (slab_provider.h). Threads: any, one spin lock. With no sink set, history
// costs one predictable branch. Failures: allocate() returns 0 and out_of_memory_report() says what
// holds the memory; freeing what is not live returns false.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/units.h"
#include "plimsoll/memory/address_ranges.h"
#include "plimsoll/memory/allocator_statistics.h"
#include "plimsoll/memory/block_table.h"
#include "plimsoll/memory/fit_index.h"
#include "plimsoll/memory/page_map.h"
#include "plimsoll/memory/recent_sizes.h"
#include "plimsoll/memory/slab_provider.h"
#include "plimsoll/memory/spin_lock.h"

namespace plimsoll::memory {

struct CachingOptions {
  Bytes largest_slab = 64_MiB;       // no handle larger than this, nor than the provider's limit
  Bytes address_space{0};            // reserved once; 0: sixteen times the capacity, at least 1 TiB
  Bytes limit = Bytes::max();        // physical bytes it may hold
  std::int64_t most_retired = 4096;  // old mappings kept before they are unmapped
  std::int64_t free_moves = 4096;    // slabs that may be moved for sizes that do not come back
  bool lend = true;                  // free memory may go to another stream
};

// A pool of blocks of its own, for a captured graph. {0, 0} is the default pool.
struct PoolId {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  bool operator==(const PoolId&) const = default;
};

// A block or a gap as a snapshot shows it.
struct BlockView {
  Address address = 0;
  Bytes size{0};
  Bytes requested{0};
  BlockState state = BlockState::kNone;
  StreamId stream;
};

// What became of a request to move blocks between device and host.
struct SpillOutcome {
  Bytes moved{0};
  Bytes stays{0};       // of the blocks: in slabs that others use a part of
  std::string problem;  // why it ended early; what was moved by then stays moved
};

// One contiguous stretch of mapped addresses.
struct SegmentView {
  Address address = 0;
  Bytes size{0};
  StreamId stream;
  PoolId pool;
  std::vector<BlockView> blocks;
};

class CachingAllocator {
 public:
  CachingAllocator(SlabProvider& provider, StreamOrder& order, CachingOptions options = {});
  ~CachingAllocator();  // gives every slab back; nothing may be in use any more
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // The address of `size` bytes for use on `stream`, aligned to 512; 0 when there is no memory.
  [[nodiscard]] Address allocate(Bytes size, StreamId stream);
  // False, and nothing done, when no live block starts there.
  bool free(Address address);
  // The block is used on `stream` too: its free will wait for that stream.
  bool record_stream(Address address, StreamId stream);

  // Allocations for which `belongs` says yes go to the pool until end_pool(). A released pool's
  // memory becomes ordinary once nothing in it is live.
  void begin_pool(PoolId pool, std::function<bool(StreamId)> belongs);
  void end_pool(PoolId pool);
  void release_pool(PoolId pool);

  // Moves what the live blocks that start at `blocks` fill to host memory, or back. Waits for the
  // device. Host memory stays pinned for the next spill until trim().
  SpillOutcome spill(std::span<const Address> blocks);
  SpillOutcome restore(std::span<const Address> blocks);
  // Host bytes that spill(blocks) would have to pin beside those that are.
  Bytes to_be_pinned(std::span<const Address> blocks) const;

  // Waits for pending frees and gives every slab that is wholly free back to the device.
  Bytes trim();
  void set_limit(Bytes limit);
  // Called by the ladder before it refuses; true when it freed something worth another search.
  void set_pressure_callback(std::function<bool(Bytes missing)> callback);

  void set_sink(EventSink* sink);  // nullptr: off
  // statistics() also looks at every block for what lies idle; counts() does not.
  AllocatorStatistics statistics() const;
  AllocatorStatistics counts() const;
  void reset_peaks();
  void reset_totals();
  std::vector<SegmentView> segments() const;
  // The bytes behind a live pointer and its start: for IPC and for range checks.
  std::optional<BlockView> find(Address inside) const;

  // What holds the memory now and what would make room for `size`.
  std::string out_of_memory_report(Bytes size, StreamId stream) const;

  // Checks the invariants above; for tests. The first violation, or empty.
  std::string verify() const;

 private:
  using ArenaIndex = std::uint32_t;
  struct Arena {
    StreamId stream;
    std::uint32_t pool = 0;
    std::uint32_t epoch = 1;
    std::vector<std::uint32_t> covered;  // by other arena: epochs up to here are behind us
    BlockIndex kept = kNoBlock;          // freed last, not joined yet
    FitIndex free;
  };
  struct Pool {
    PoolId id;
    bool released = false;
    std::int64_t uses = 0;
    std::int64_t live = 0;
    std::vector<std::pair<StreamId, ArenaIndex>> arenas;
  };
  using SlabIndex = std::uint32_t;
  static constexpr SlabIndex kNoSlab = 0;
  struct Slab {
    PhysicalHandle handle;
    std::int64_t size = 0;
    bool on_host = false;
  };
  struct Window {  // one mapping of a slab
    Address at = 0;
    SlabIndex slab = kNoSlab;
    std::int64_t covered = 0;  // bytes that blocks use through it
  };
  struct Retired {
    Address at = 0;
    std::int64_t size = 0;
    std::uint32_t mark_group = 0;
  };
  struct PendingFree {
    BlockIndex block;
    std::vector<std::pair<StreamId, OrderMark>> marks;
    std::vector<StreamId> unmarked;  // being captured when the block was freed
  };
  struct Run;         // neighbouring free blocks
  struct Piece;       // what is free of a slab in one window
  struct Survey;      // which slabs are free, and which ends of slabs
  struct GrowthPlan;  // what goes where

  // The fast path (caching_allocator.cpp).
  ArenaIndex arena_for(StreamId stream);
  ArenaIndex make_arena(std::uint32_t pool, StreamId stream);
  BlockIndex take_fit(ArenaIndex arena, std::int64_t size);
  BlockIndex cut(BlockIndex id, std::int64_t size);
  void hand_out(BlockIndex id, std::int64_t requested);
  void put_back(BlockIndex id);
  void free_later(BlockIndex id);
  void dissolve(std::uint32_t pool);
  BlockIndex join_and_insert(BlockIndex id);
  void join_kept(ArenaIndex arena);
  void notify(MemoryAction action, Address address, std::int64_t bytes, StreamId stream,
              StreamId peer = {});

  // The ladder (caching_ladder.cpp).
  BlockIndex allocate_slowly(ArenaIndex arena, std::int64_t size);
  BlockIndex search_all(ArenaIndex arena, std::int64_t size);
  BlockIndex borrow(ArenaIndex arena, const std::vector<Run>& runs, std::int64_t size);
  BlockIndex adopt(ArenaIndex arena, BlockIndex first, BlockIndex last);
  bool wait_for_oldest_pending();
  void poll_pending();
  void finish_pending(std::size_t index);
  void order_behind(ArenaIndex borrower, ArenaIndex lender);
  bool is_behind(ArenaIndex borrower, const Block& block) const;

  // What lies free, and what of it to use (caching_survey.cpp).
  std::vector<Run> free_runs(ArenaIndex arena) const;
  Survey survey(const std::vector<Run>& runs) const;
  std::vector<std::uint32_t> by_worth(const std::vector<Run>& runs) const;
  void sort_partial(std::vector<Piece>& partial, const std::vector<Run>& runs, Survey& out) const;
  GrowthPlan plan_growth(ArenaIndex arena, const std::vector<Run>& runs, std::int64_t size,
                         bool move) const;
  void choose_tail(ArenaIndex arena, const std::vector<Run>& runs, std::int64_t size,
                   GrowthPlan& plan) const;
  void choose_ends(ArenaIndex arena, const std::vector<Run>& runs, const Survey& found,
                   std::int64_t size, GrowthPlan& plan) const;
  void choose_slabs(const Survey& found, GrowthPlan& plan) const;
  bool has_room(BlockIndex tail, std::int64_t missing) const;
  bool is_ready(ArenaIndex arena, const Run& run, const Piece& piece) const;

  // Growth and remapping (caching_growth.cpp).
  bool reserve_once();
  BlockIndex grow(ArenaIndex arena, const std::vector<Run>& runs, std::int64_t size);
  BlockIndex grow_plain(ArenaIndex arena, std::int64_t size);
  bool may_move();
  std::int64_t largest_new_slab(std::int64_t request) const;
  bool create_missing(GrowthPlan& plan, std::int64_t request);
  bool reserve_addresses(GrowthPlan& plan);
  bool map_planned(GrowthPlan& plan);
  void undo_growth(GrowthPlan& plan);
  void detach(ArenaIndex arena, const std::vector<Run>& runs, GrowthPlan& plan);
  std::vector<Retired> cut_pieces(ArenaIndex arena, const std::vector<Run>& runs,
                                  std::vector<Piece>& pieces);
  BlockIndex cut_out(ArenaIndex arena, BlockIndex id, Interval<Address> hole);
  void attach(ArenaIndex arena, const GrowthPlan& plan);
  void add_free_block(ArenaIndex arena, Address at, std::int64_t size, BlockIndex before);
  SlabIndex make_slab(const Slab& slab);
  void drop_slab(SlabIndex id);
  void open_window(Address at, SlabIndex slab, std::int64_t covered);
  void close_window(WindowIndex id);
  void unmap_retired(bool all);

  std::string verify_windows(const std::vector<std::int64_t>& covered) const;

  // Device <-> host (caching_spill.cpp).
  struct Exchange;                                        // a run of windows that get other slabs
  using LyingBlock = std::pair<WindowIndex, BlockIndex>;  // a window, and a block that lies in it
  std::string cannot_move(std::span<const Address> blocks) const;
  std::vector<LyingBlock> windows_of(std::span<const Address> blocks, bool on_host) const;
  std::size_t length_of_run(std::span<const LyingBlock> windows) const;
  std::vector<BlockIndex> blocks_in(WindowIndex window, BlockIndex one) const;
  bool all_spilled(WindowIndex window, BlockIndex one) const;
  SpillOutcome move_windows(std::span<const Address> blocks, bool to_host);
  std::optional<Slab> memory_for(std::int64_t size, bool on_host);
  void give_up(const Slab& slab);
  std::size_t begin_exchange(std::span<const LyingBlock> windows, bool to_host,
                             std::vector<Exchange>& begun);
  bool finish_exchange(const Exchange& exchange, bool copied);
  void exchange_slab(const LyingBlock& one, const Slab& to);
  void unmap_slabs(Address at, std::span<const Slab> slabs);
  static std::vector<RowEntry> row_of(std::span<const Slab> slabs);
  void free_spilled(BlockIndex id);
  bool leave_host(WindowIndex window, BlockIndex one);

  // Giving back (caching_trim.cpp).
  Bytes trim_locked();
  void settle();
  void gather_settled();
  Bytes release_idle_mapped();
  Bytes release_idle_plain();

  SlabProvider& provider_;
  StreamOrder& order_;
  CachingOptions options_;
  mutable SpinLock lock_;

  BlockTable blocks_;
  PageMap pages_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::vector<Pool> pools_;
  StreamId last_stream_;
  ArenaIndex last_arena_ = 0;
  std::vector<std::pair<std::uint32_t, std::function<bool(StreamId)>>> captures_;

  Address reserved_at_ = 0;
  Bytes reserved_size_{0};
  AddressRanges addresses_;
  std::vector<Slab> slabs_;
  std::vector<SlabIndex> spare_slabs_;
  std::vector<Slab> spare_host_;  // pinned, mapped nowhere
  std::vector<Window> windows_;
  std::vector<WindowIndex> spare_windows_;
  std::vector<Retired> retired_;
  std::unordered_map<std::uint32_t, std::pair<OrderMark, std::int64_t>> mark_groups_;
  std::uint32_t next_mark_group_ = 1;
  std::int64_t moves_left_ = 0;
  std::int64_t moves_earned_ = 0;
  RecentSizes recent_sizes_;
  bool came_back_ = false;  // the size being looked for
  std::unordered_map<BlockIndex, std::vector<StreamId>> shared_with_;
  std::vector<PendingFree> pending_;

  AllocatorStatistics statistics_;
  EventSink* sink_ = nullptr;
  std::function<bool(Bytes)> pressure_;
};

}  // namespace plimsoll::memory
