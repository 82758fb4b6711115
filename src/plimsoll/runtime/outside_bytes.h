// What the process holds outside the arena: live bytes since binding, by whoever allocated them.
//
// A plan can be kept to the byte while a library quietly allocates beside it. So every call that
// takes memory is counted, whoever makes it: malloc, calloc, realloc, the aligned ones and operator
// new behind them, and mmap, mremap and munmap, which libraries call directly.
//
//   OutsideBytes outside;          // counts from zero, from here on
//   ... steps ...
//   outside.peak();                // the most that was alive at once
//
//   calls     malloc 6 MiB    malloc 1 MiB    free (6)    mmap 2 MiB    free of a block from before
//   live           6               7             1             3        3
//   peak           6               7             7             7        7
//
// What it counts. A block counts with the bytes that were asked for, from its allocation to its
// free. A block from before is unknown, and so is its free. A mapping counts with its whole length,
// touched or not, unless it is a view of a file that cannot be written: that is the file's memory.
// A part that is unmapped, or mapped over, stops counting. What glibc maps for itself (the heap
// behind malloc, the stacks of threads) passes through none of these calls; the bytes of the heap
// are counted as blocks, the stacks are not counted. A system call made by hand is not seen either.
// The test holds the figure against the kernel's own count of resident pages, so that nothing large
// hides there.
//
// How. The functions are replaced in the program itself (interpose/allocation_calls.cpp, an object
// that only programs link, because a library has no business replacing its user's malloc); they
// call the next allocator in line, whichever that is, and say here what they did. Without an
// OutsideBytes alive that costs one load a call. With one, a lock and a table of live blocks: for
// measuring runs, never for timed ones.
//
// Sanitizers bring an allocator of their own that must not be stood in front of: there, and in
// programs that do not link the object, available() is false and nothing is counted.
//
// One at a time in a process. Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plimsoll/base/units.h"

namespace plimsoll::runtime {

class OutsideBytes {
 public:
  static constexpr std::int64_t kLarge = 4096;

  static bool available();

  OutsideBytes();
  OutsideBytes(const OutsideBytes&) = delete;
  OutsideBytes& operator=(const OutsideBytes&) = delete;
  ~OutsideBytes();

  Bytes live() const;
  Bytes peak() const;
  // How many allocations had kLarge bytes or more.
  std::int64_t large_allocations() const;
};

// What this thread allocates while it lives belongs to an instrument (a trace, a table of results)
// and is not counted.
class Uncounted {
 public:
  Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
  ~Uncounted();

 private:
  bool before_;
};

// For interpose/allocation_calls.cpp alone: what the replaced functions say.
namespace outside_bytes {

extern std::atomic<bool> counting;
void linked();
void block_taken(const void* block, std::size_t bytes);
void range_mapped(const void* begin, std::size_t bytes);
// Called before the memory is really given back, or another thread may have it by then. How many of
// the bytes were counted.
std::size_t block_given_back(const void* block);
std::size_t range_unmapped(const void* begin, std::size_t bytes);

}  // namespace outside_bytes
}  // namespace plimsoll::runtime
