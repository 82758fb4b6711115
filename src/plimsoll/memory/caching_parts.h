// The values that survey, planning and growth hand to each other. Private to the caching allocator.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/memory/caching_allocator.h"

namespace plimsoll::memory {

// Up to here a program's waste is counted in bytes, so slabs are small and parts of them are
// shared; beyond, it is counted in map calls.
inline constexpr std::int64_t kSmallProgram = std::int64_t{3} << 30;

// Neighbouring free blocks of one pool, whatever stream they belong to; a maximal stretch.
struct CachingAllocator::Run {
  BlockIndex first = kNoBlock;
  BlockIndex last = kNoBlock;
  std::int64_t size = 0;
  bool own = false;  // all of it the asking arena's
};

// What lies free of one slab, as seen through one window.
struct CachingAllocator::Piece {
  SlabIndex slab = kNoSlab;
  WindowIndex window = kNoWindow;
  std::uint32_t run = 0;
  Address begin = 0;
  Address end = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(end - begin); }
};

// What lies free in a set of runs, slab by slab.
struct CachingAllocator::Survey {
  struct IdleSlab {
    SlabIndex slab = kNoSlab;
    bool own = false;
    std::uint32_t first = 0;  // its pieces in `pieces`
    std::uint32_t count = 0;
  };
  std::vector<Piece> pieces;
  std::vector<IdleSlab> idle;  // all of the slab is free; what is best moved stands last
  std::vector<Piece> heads;    // the rest of a slab, to its end: a new stretch can begin with it
  std::vector<Piece> lasts;    // the front of a slab: a new stretch can end with it; by size
};

struct CachingAllocator::GrowthPlan {
  BlockIndex tail = kNoBlock;  // the free block to extend; none: a place of its own
  Piece head;                  // the part of a slab to begin with, if any
  Piece last;                  // the part of a slab to end with, if any
  std::int64_t missing = 0;    // bytes still to be found in whole slabs
  std::vector<SlabIndex> moved;
  std::vector<Piece> taken;  // everything that leaves its place, of slabs moved and ends
  std::vector<Slab> created;
  std::int64_t mapped = 0;  // bytes of addresses the new windows take
  Address at = 0;
};

}  // namespace plimsoll::memory
