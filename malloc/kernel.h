// What is asked of the kernel: addresses, memory, a futex lock, a coarse clock, and bytes written
// to a file.
//
// Every call is a raw system call. A preloaded malloc must not go through functions of libc that
// somebody else may interpose (a profiler's mmap, a sandbox's open), since those may call malloc
// again from inside ours; and raw calls leave errno alone, which free() promises. A failure is a
// return value, never errno.
//
// The words used for memory, from outside in:
//   reserved   addresses are ours, nothing may be touched (PROT_NONE: counts for no commit limit)
//   committed  may be touched
//   resident   was touched since it was committed or purged: it costs memory
//   purged     given back (MADV_DONTNEED): reads as zero when touched again
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace plimsoll::heap {

inline constexpr std::size_t kKernelPage = 4096;
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

// Null when the kernel refuses. `alignment` is a power of two of at least a kernel page.
void* reserve_addresses(std::size_t bytes, std::size_t alignment);
void release_addresses(void* begin, std::size_t bytes);
bool commit(void* begin, std::size_t bytes);
void purge(void* begin, std::size_t bytes);
void ask_for_huge_pages(void* begin, std::size_t bytes);
bool populate(void* begin, std::size_t bytes);  // makes it resident now
bool protect(void* begin, std::size_t bytes);   // any touch faults from now on
// Moves resident pages to another committed range, whose own are dropped, and leaves the old one
// committed and purged. False when the kernel does not: nothing was moved, and the other range is
// committed and purged.
bool move_pages(void* from, void* to, std::size_t bytes);

// The limit on a process's addresses (RLIMIT_AS); SIZE_MAX when there is none.
std::size_t address_limit();

int open_file(const char* path, bool write);
long read_file(int file, void* into, std::size_t bytes);
void write_all(int file, const void* from, std::size_t bytes);
void close_file(int file);

std::uint64_t now_coarse_ns();  // a few milliseconds of resolution, no system call
std::uint64_t now_ns();
int process_id();
int thread_id();
int numa_node();  // of the CPU that runs this thread

// A lock of one word. Waiters spin for a moment and then sleep: spinning on would starve a holder
// that lost its CPU. A forked child may unlock what its parent's thread held at the fork.
class Lock {
 public:
  void lock() {
    std::uint32_t free = 0;
    if (!state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) wait();
  }
  void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kContended) wake();
  }

 private:
  static constexpr std::uint32_t kFree = 0, kHeld = 1, kContended = 2;
  void wait();
  void wake();
  std::atomic<std::uint32_t> state_{kFree};
};

class Guard {
 public:
  explicit Guard(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Guard() { lock_.unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace plimsoll::heap
