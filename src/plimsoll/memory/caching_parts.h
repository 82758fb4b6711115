// The two values that the ladder and growth hand to each other. Private to the caching allocator.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/memory/caching_allocator.h"

namespace plimsoll::memory {

// Neighbouring free blocks of one pool, whatever stream they belong to; a maximal stretch.
struct CachingAllocator::Run {
  BlockIndex first = kNoBlock;
  BlockIndex last = kNoBlock;
  std::int64_t size = 0;
  bool own = false;  // all of it the asking arena's
};

struct CachingAllocator::GrowthPlan {
  struct Move {
    SlabIndex slab;
    std::uint32_t run;
  };
  BlockIndex tail = kNoBlock;  // the free block to extend; none: a place of its own
  std::int64_t missing = 0;    // bytes still to be found
  std::int64_t total = 0;      // the request; later the bytes to be mapped
  Address at = 0;
  std::vector<Move> moved;
  std::vector<Slab> created;
};

}  // namespace plimsoll::memory
