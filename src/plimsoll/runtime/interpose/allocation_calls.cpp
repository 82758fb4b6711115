// The process's malloc and mmap, replaced by ones that say what they do to outside_bytes.h.
//
// Linked as an object by programs that measure. Each function calls the next one in line of its
// name: the C library's, or that of an allocator that was preloaded.
#ifndef PLIMSOLL_SANITIZED

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "plimsoll/runtime/outside_bytes.h"

namespace {

namespace outside = plimsoll::runtime::outside_bytes;

// Looking a function up may itself allocate: such blocks come from here and are never given back.
alignas(64) std::byte first_memory[16 << 10];
std::size_t first_used = 0;

void* take_first(std::size_t alignment, std::size_t bytes) {
  const std::size_t begin = (first_used + alignment - 1) / alignment * alignment;
  if (bytes > sizeof first_memory || begin > sizeof first_memory - bytes) return nullptr;
  first_used = begin + bytes;
  return first_memory + begin;
}

bool is_first(const void* block) {
  return block >= first_memory && block < first_memory + sizeof first_memory;
}

struct Next {
  decltype(&::malloc) malloc;
  decltype(&::calloc) calloc;
  decltype(&::realloc) realloc;
  decltype(&::free) free;
  decltype(&::memalign) memalign;
  decltype(&::posix_memalign) posix_memalign;
  decltype(&::aligned_alloc) aligned_alloc;
  decltype(&::valloc) valloc;
  decltype(&::pvalloc) pvalloc;
  decltype(&::mmap) mmap;
  decltype(&::munmap) munmap;
  decltype(&::mremap) mremap;
};

template <typename Function>
void look_up(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
  if (function == nullptr) std::abort();
}

// Null while the functions are being looked up, which the first call of all does, before there are
// threads.
const Next* next() {
  static Next functions;
  static enum { kNot, kNow, kDone } looked_up = kNot;
  if (looked_up == kDone) [[likely]]
    return &functions;
  if (looked_up == kNow) return nullptr;
  looked_up = kNow;
  look_up(functions.malloc, "malloc");
  look_up(functions.calloc, "calloc");
  look_up(functions.realloc, "realloc");
  look_up(functions.free, "free");
  look_up(functions.memalign, "memalign");
  look_up(functions.posix_memalign, "posix_memalign");
  look_up(functions.aligned_alloc, "aligned_alloc");
  look_up(functions.valloc, "valloc");
  look_up(functions.pvalloc, "pvalloc");
  look_up(functions.mmap, "mmap");
  look_up(functions.munmap, "munmap");
  look_up(functions.mremap, "mremap");
  looked_up = kDone;
  outside::linked();
  return &functions;
}

bool counting() {
  return outside::counting.load(std::memory_order_relaxed);
}

void* taken(void* block, std::size_t bytes) {
  if (counting()) [[unlikely]]
    outside::block_taken(block, bytes);
  return block;
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) noexcept {
  const Next* const real = next();
  return real != nullptr ? taken(real->malloc(bytes), bytes)
                         : take_first(alignof(std::max_align_t), bytes);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  const Next* const real = next();
  // The first memory is zero, and calls while looking up are small.
  return real != nullptr ? taken(real->calloc(count, bytes), count * bytes)
                         : take_first(alignof(std::max_align_t), count * bytes);
}

void free(void* block) noexcept {
  if (block == nullptr || is_first(block)) return;
  if (counting()) [[unlikely]]
    outside::block_given_back(block);
  next()->free(block);
}

void* realloc(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return malloc(bytes);
  if (is_first(block)) {
    void* const moved = malloc(bytes);
    const auto rest = static_cast<std::size_t>(first_memory + sizeof first_memory -
                                               static_cast<std::byte*>(block));
    return moved != nullptr ? std::memcpy(moved, block, bytes < rest ? bytes : rest) : nullptr;
  }
  if (!counting()) [[likely]]
    return next()->realloc(block, bytes);
  const std::size_t before = outside::block_given_back(block);
  void* const moved = next()->realloc(block, bytes);
  if (moved != nullptr) return taken(moved, bytes);
  if (bytes > 0 && before > 0) outside::block_taken(block, before);  // refused: it is still there
  return nullptr;
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return taken(next()->memalign(alignment, bytes), bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return taken(next()->aligned_alloc(alignment, bytes), bytes);
}
void* valloc(std::size_t bytes) noexcept {
  return taken(next()->valloc(bytes), bytes);
}
void* pvalloc(std::size_t bytes) noexcept {
  return taken(next()->pvalloc(bytes), bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) noexcept {
  const int error = next()->posix_memalign(out, alignment, bytes);
  if (error == 0) taken(*out, bytes);
  return error;
}

void* mmap(void* where, std::size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  void* const begin = next()->mmap(where, bytes, protection, flags, file, offset);
  const bool has_own_memory = (flags & MAP_ANONYMOUS) != 0 || (protection & PROT_WRITE) != 0;
  if (counting() && begin != MAP_FAILED && has_own_memory) outside::range_mapped(begin, bytes);
  return begin;
}
void* mmap64(void* where, std::size_t bytes, int protection, int flags, int file,
             off64_t offset) noexcept {
  return mmap(where, bytes, protection, flags, file, offset);
}

int munmap(void* begin, std::size_t bytes) noexcept {
  if (counting()) outside::range_unmapped(begin, bytes);
  return next()->munmap(begin, bytes);
}

void* mremap(void* begin, std::size_t before, std::size_t after, int flags, ...) noexcept {
  va_list more;
  va_start(more, flags);
  void* const where = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  const std::size_t counted = counting() ? outside::range_unmapped(begin, before) : 0;
  void* const moved = next()->mremap(begin, before, after, flags, where);
  if (moved == MAP_FAILED) {
    if (counted > 0) outside::range_mapped(begin, before);
  } else if (counting() && counted > 0) {
    outside::range_mapped(moved, after);
  } else if (counting() && after > before) {
    outside::range_mapped(static_cast<std::byte*>(moved) + before,
                          after - before);  // what it grew by
  }
  return moved;
}

}  // extern "C"

#endif
