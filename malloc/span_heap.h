// Runs of granules (64 KiB): the memory behind everything else, and large blocks themselves.
//
//   region   addresses reserved at once, 1 GiB or more; committed from the bottom up. Huge pages
//            are asked for once
//            per region, never per block: a process may have only 65,530 mappings.
//   unit     2 MiB of a region, where the kernel puts a huge page
//   granule  64 KiB of a unit; a bit per granule says whether it is resident
//   span     a run of granules that is one large block, one segment of small pages or slices, or
//            free
//
//   region |==unit==|==unit==|==unit==|==unit==| reserved …
//   spans  |--block 1--|-free-|-block 2-|-free-|
//
// Blocks are packed at granules, not at huge pages, and neighbours share a unit: a heap of 20 MiB
// blocks wastes no tails. A free span has no free neighbour (they are merged through the page map,
// where a span's first and last granule stand), and is kept in bins by length, eight per doubling.
//
// Which free span? Among the first candidates that are long enough the one in which most of the new
// block is already resident; then the shortest; then the lowest address. Reusing resident memory
// first is what makes large blocks fast, see footprint.h; lowest address keeps the rest empty.
//
// Residency is followed, not asked for: the first touch of an empty unit makes all of it resident
// when huge pages are on; a unit of which a part was purged has lost its huge page and fills
// granule by granule. What the cache has to give up goes oldest span first, whole units first, then
// parts of units.
//
// Moving. A new block that lies where nothing is resident does not wait for fresh, zeroed memory:
// whole resident units of free spans, the oldest first, are moved under it by their page tables,
// some microseconds for what takes the kernel 150 to clear (and far longer where a hypervisor has
// to find the memory first). So memory is reused wherever it lies, and a hole in the addresses
// costs nothing. Each move may cut a mapping in three; kMostMoved keeps their number well below the
// kernel's limit.
//
// Two kinds of regions, because a small program should not pay 2 MiB for its first block: segments
// (of small pages and slices) ask for huge pages only behind the first 16 MiB; large blocks always
// do.
//
// On a machine of several NUMA nodes a unit that another node's thread made resident does not count
// as resident: it is purged when a block takes it over, so that first touch places it afresh.
// (Moving pages would cost more.)
//
// Threads: every call holds heap_lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "footprint.h"
#include "kernel.h"
#include "page_map.h"

namespace plimsoll::heap {

inline constexpr unsigned kGranulesOfUnit = kHugePage / kGranule;

enum class Use : std::uint8_t { kSegment, kBlock };

struct Region {
  Use use = Use::kBlock;
  char* base = nullptr;
  std::size_t bytes = 0;
  std::size_t committed = 0;          // from the base up
  std::size_t huge_from = 0;          // huge pages are asked for from here up
  std::uint32_t* resident = nullptr;  // per unit, a bit per granule
  std::uint8_t* split = nullptr;      // per unit: its huge page is lost
  std::uint8_t* node = nullptr;       // per unit: where it was made resident
  std::uint8_t* moved = nullptr;      // per unit: pages were moved there, a mapping of its own
  Region* next = nullptr;

  std::size_t unit_of(const char* at) const {
    return static_cast<std::size_t>(at - base) / kHugePage;
  }
};

struct Span : Descriptor {
  Region* region = nullptr;
  char* start = nullptr;
  std::size_t granules = 0;
  bool block = false;     // or a segment
  std::size_t bytes = 0;  // of a block: as requested
  bool zero = false;      // of a block: reads as zero, nothing of it was resident
  bool guarded = false;   // of a block: a guard page ends it (check_mode.h)
  Span* next = nullptr;   // in its bin
  Span* previous = nullptr;
  Span* newer = nullptr;  // of free spans, by the time they were freed
  Span* older = nullptr;

  std::size_t length() const { return granules * kGranule; }
  char* end() const { return start + length(); }
  // Of a block: what a program may use; a guard page follows it.
  std::size_t payload() const { return round_up(bytes > 0 ? bytes : 1, kKernelPage); }
};

class SpanHeap {
 public:
  // A span of `granules` that begins at a multiple of `alignment` plus `phase` (both multiples of a
  // granule). A block counts as live and resident from now on, a segment only by what its user
  // occupies. The first `incoming` bytes need no memory: the caller moves pages there. Null when
  // there is no memory.
  Span* allocate(Use use, std::size_t granules, std::size_t alignment = kGranule,
                 std::size_t phase = 0, std::size_t incoming = 0);
  void free(Span* span);
  // Makes a block longer where it stands, if what follows is free; or shorter.
  bool grow(Span* span, std::size_t granules);
  void shrink(Span* span, std::size_t granules);
  // The pages of a block were moved elsewhere: nothing of it is resident.
  void forget_pages(Span* block);

  // Granules of a segment are taken into use, or are free again. Taking says whether they all read
  // as zero.
  bool occupy(Region& region, char* begin, char* end);
  void vacate(Region& region, const char* begin, const char* end);
  // Gives back what is resident in a free range.
  std::size_t purge_range(Region& region, char* begin, char* end);

  // Purges until the cache is within its bound; `everything`: all of it. Returns the bytes given
  // back.
  std::size_t trim(bool everything = false);
  Footprint& footprint() { return footprint_; }
  std::size_t reserved() const { return reserved_; }
  std::size_t reused() const { return reused_; }  // bytes handed out that were resident already
  std::size_t purged() const { return purged_; }
  std::size_t blocks() const { return blocks_; }      // allocated so far
  void set_nodes(unsigned nodes) { nodes_ = nodes; }  // NUMA nodes of the machine

 private:
  static constexpr unsigned kBins = 256;

  struct Place {
    Span* span = nullptr;
    char* at = nullptr;
    std::size_t resident = 0;
  };

  static unsigned bin_of(std::size_t granules);
  Place find_place(Use use, std::size_t granules, std::size_t alignment, std::size_t phase) const;
  void consider(Place& best, Span* span, std::size_t granules, std::size_t alignment,
                std::size_t phase) const;
  Span* carve(const Place& place, std::size_t granules);
  bool commit_to(Region& region, const char* end);
  bool add_region(Use use, std::size_t bytes);
  bool make_region(Use use, std::size_t bytes);
  bool release_free_regions();
  void insert_free(Span* span);
  void remove_free(Span* span);
  Span* new_span(Region* region, char* start, std::size_t granules);
  void delete_span(Span* span);
  static void enter(Span* span, Kind kind);
  static void erase(const Span* span);

  std::size_t resident_in(const Region& region, const char* begin, const char* end) const;
  void adopt_resident_units(Region& to, char* begin, char* end);
  bool move_units(Region& from, std::size_t source, Region& to, std::size_t target,
                  std::size_t units);
  std::size_t purge_span(Span* span, std::size_t bytes, bool parts);

  Span* bins_[2][kBins] = {};  // by use
  std::uint64_t used_bins_[2][kBins / 64] = {};
  Region* regions_ = nullptr;
  std::size_t next_region_[2] = {std::size_t{1} << 30, std::size_t{1} << 30};
  Span* newest_ = nullptr;  // of free spans
  Span* oldest_ = nullptr;
  Span* spare_ = nullptr;  // descriptors
  Footprint footprint_;
  std::size_t reserved_ = 0;
  std::size_t reused_ = 0;
  std::size_t purged_ = 0;
  std::size_t moved_ = 0;  // units that count in Region::moved
  // Older kernels move only what is one mapping, and unmap the target before they refuse: until it
  // is mapped again another thread could be given its addresses. So they are asked once.
  bool moves_runs_ = true;
  unsigned nodes_ = 1;
  std::size_t blocks_ = 0;
};

extern constinit Lock heap_lock;
extern constinit SpanHeap span_heap;

// Purges free granules inside segments when free spans were not enough; defined by the users of
// segments.
std::size_t purge_inside_segments(std::size_t bytes);

}  // namespace plimsoll::heap
