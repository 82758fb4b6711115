// A pool of host memory for tensors: taken from the system once, then recycled.
//
// For the strategy that allocates each tensor when its operator runs. Asking the system every time
// costs a page fault per 4 KiB touched, some 0.25 ms per MiB: far more than most operators.
//
// How: sizes are rounded up to one of 8 buckets per power of two (at most 12.5 % more), each bucket
// keeps a last-in-first-out list of free blocks. Blocks up to 64 KiB are cut from 1 MiB slabs;
// larger ones are mapped from the system one by one, from 2 MiB on aligned to huge pages, and huge
// pages are asked for. Freed blocks of any size stay in the pool until trim().
//
//   HostPool pool;
//   void* a = pool.allocate(5000_bytes);   // bucket 5120
//   pool.free(a);
//   void* b = pool.allocate(5100_bytes);   // the same block again: a == b
//
// Pointers are aligned to 64 bytes. A 64-byte header in front of each block names its bucket.
// allocate(0) gives a valid pointer of its own. Content is whatever was there.
//
// Cost: about 20 ns a call when the bucket has a block. Threads: any; one lock.
// Failures: nullptr when the system refuses. Freeing a pointer that is not from the pool, or twice,
// is a bug of the caller and ends the program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "plimsoll/base/units.h"

namespace plimsoll::memory {

struct HostPoolStatistics {
  Bytes in_use{0};  // as requested
  Bytes peak_in_use{0};
  Bytes held{0};  // taken from the system
  Bytes peak_held{0};
  std::int64_t allocations = 0;
  std::int64_t recycled = 0;  // allocations served without the system
};

class HostPool {
 public:
  HostPool() = default;
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;
  ~HostPool();  // every block must have been freed or be never used again

  [[nodiscard]] void* allocate(Bytes size);
  void free(void* pointer);  // nullptr is fine

  // Gives free blocks above 64 KiB back to the system; returns how much.
  Bytes trim();

  HostPoolStatistics statistics() const;
  void reset_peak();

 private:
  struct Header;
  static constexpr int kBuckets = 8 * 56;

  Header* take_from_system(int bucket, Bytes size);
  Header* cut_from_slab(int bucket, Bytes size);

  mutable std::mutex mutex_;
  std::array<Header*, kBuckets> free_{};
  struct Mapping {
    void* base;
    std::size_t size;
  };
  std::vector<Mapping> slabs_;
  std::size_t slab_used_ = 0;
  HostPoolStatistics statistics_;
};

}  // namespace plimsoll::memory
