#include "kernel.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "text.h"

namespace plimsoll::heap {
namespace {

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;
#endif
#ifndef MREMAP_DONTUNMAP
constexpr int MREMAP_DONTUNMAP = 4;
#endif

long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
#error "the host allocator knows the system calls of x86-64 and AArch64"
#endif
}

long address(const void* p) {
  return reinterpret_cast<long>(p);
}
bool failed(long result) {
  return result < 0 && result > -4096;
}

void advise(void* begin, std::size_t bytes, int advice) {
  system_call(SYS_madvise, address(begin), static_cast<long>(bytes), advice);
}

}  // namespace

void* reserve_addresses(std::size_t bytes, std::size_t alignment) {
  const std::size_t slack = alignment > kKernelPage ? alignment - kKernelPage : 0;
  const std::size_t total = bytes + slack;
  if (total < bytes) return nullptr;
  const long mapped = system_call(SYS_mmap, 0, static_cast<long>(total), PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (failed(mapped)) return nullptr;
  const auto base = static_cast<std::uintptr_t>(mapped);
  const std::uintptr_t begin = round_up(base, alignment);
  if (begin > base) release_addresses(reinterpret_cast<void*>(base), begin - base);
  const std::size_t behind = base + total - (begin + bytes);
  if (behind > 0) release_addresses(reinterpret_cast<void*>(begin + bytes), behind);
  return reinterpret_cast<void*>(begin);
}

void release_addresses(void* begin, std::size_t bytes) {
  system_call(SYS_munmap, address(begin), static_cast<long>(bytes));
}

bool commit(void* begin, std::size_t bytes) {
  return !failed(
      system_call(SYS_mprotect, address(begin), static_cast<long>(bytes), PROT_READ | PROT_WRITE));
}

bool protect(void* begin, std::size_t bytes) {
  return !failed(system_call(SYS_mprotect, address(begin), static_cast<long>(bytes), PROT_NONE));
}

void purge(void* begin, std::size_t bytes) {
  advise(begin, bytes, MADV_DONTNEED);
}

void ask_for_huge_pages(void* begin, std::size_t bytes) {
  advise(begin, bytes, MADV_HUGEPAGE);
}

bool populate(void* begin, std::size_t bytes) {
  return !failed(
      system_call(SYS_madvise, address(begin), static_cast<long>(bytes), MADV_POPULATE_WRITE));
}

bool move_pages(void* from, void* to, std::size_t bytes) {
  const auto length = static_cast<long>(bytes);
  if (!failed(system_call(SYS_mremap, address(from), length, length,
                          MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, address(to)))) {
    return true;
  }
  // The kernel may have dropped the target before it refused: pages of several mappings, say.
  if (failed(system_call(SYS_mmap, address(to), length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0))) {
    die("malloc", to, "is an address that the kernel took back (too many mappings?)");
  }
  ask_for_huge_pages(to, bytes);
  return false;
}

std::size_t address_limit() {
  rlimit64 limit{};
  if (failed(system_call(SYS_prlimit64, 0, RLIMIT_AS, 0, address(&limit)))) return SIZE_MAX;
  return limit.rlim_cur == RLIM64_INFINITY ? SIZE_MAX : limit.rlim_cur;
}

int open_file(const char* path, bool write) {
  const int flags = write ? O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC : O_RDONLY | O_CLOEXEC;
  const long file = system_call(SYS_openat, AT_FDCWD, address(path), flags, 0644);
  return failed(file) ? -1 : static_cast<int>(file);
}

long read_file(int file, void* into, std::size_t bytes) {
  const long got = system_call(SYS_read, file, address(into), static_cast<long>(bytes));
  return failed(got) ? -1 : got;
}

void write_all(int file, const void* from, std::size_t bytes) {
  auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const long put = system_call(SYS_write, file, address(at), static_cast<long>(bytes));
    if (put == -4) continue;  // EINTR
    if (put <= 0) return;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

void close_file(int file) {
  system_call(SYS_close, file);
}

std::uint64_t now_coarse_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

std::uint64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

int process_id() {
  return static_cast<int>(system_call(SYS_getpid));
}
int thread_id() {
  return static_cast<int>(system_call(SYS_gettid));
}

int numa_node() {
  unsigned node = 0;
  return failed(system_call(SYS_getcpu, 0, address(&node), 0)) ? 0 : static_cast<int>(node);
}

void Lock::wait() {
  for (int spin = 0; spin < 100; ++spin) {
    std::uint32_t free = kFree;
    if (state_.load(std::memory_order_relaxed) == kFree &&
        state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire)) {
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  while (state_.exchange(kContended, std::memory_order_acquire) != kFree) {
    system_call(SYS_futex, address(&state_), FUTEX_WAIT_PRIVATE, kContended, 0);
  }
}

void Lock::wake() {
  system_call(SYS_futex, address(&state_), FUTEX_WAKE_PRIVATE, 1);
}

}  // namespace plimsoll::heap
