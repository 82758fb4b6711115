// What C, POSIX, C++ and glibc's manual promise of malloc and its kin.
#include <dlfcn.h>
#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "probe.h"

namespace probe {
namespace {

bool aligned(const void* p, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(p) % to == 0;
}

// Volatile, so that the compiler cannot see through calls with absurd sizes.
volatile std::size_t absurd = SIZE_MAX;

bool all_bytes(const void* p, std::size_t bytes, unsigned char value) {
  auto* at = static_cast<const unsigned char*>(p);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != value) return false;
  }
  return true;
}

void zero_sizes(Arguments) {
  void* a = std::malloc(0);
  void* b = std::malloc(0);
  PROBE(a != nullptr && b != nullptr && a != b);
  std::free(a);
  std::free(b);
  std::free(nullptr);
  void* c = std::calloc(0, 8);
  PROBE(c != nullptr);
  PROBE(std::realloc(c, 0) == nullptr);
  void* d = std::realloc(nullptr, 0);
  PROBE(d != nullptr);
  std::free(d);
  PROBE(malloc_usable_size(nullptr) == 0);
}

void overflow(Arguments) {
  for (std::size_t bytes : {std::size_t{absurd}, absurd - 4095, absurd / 2 + 1}) {
    errno = 0;
    PROBE(std::malloc(bytes) == nullptr && errno == ENOMEM);
    errno = 0;
    PROBE(std::calloc(1, bytes) == nullptr && errno == ENOMEM);
    void* block = std::malloc(100);
    std::memset(block, 7, 100);
    errno = 0;
    PROBE(std::realloc(block, bytes) == nullptr && errno == ENOMEM);
    PROBE(all_bytes(block, 100, 7));  // a failed realloc leaves the block
    std::free(block);
    void* untouched = reinterpret_cast<void*>(1);
    PROBE(posix_memalign(&untouched, 64, bytes) == ENOMEM &&
          untouched == reinterpret_cast<void*>(1));
    PROBE(std::aligned_alloc(64, bytes) == nullptr);
    PROBE(memalign(4096, bytes) == nullptr);
    PROBE(valloc(bytes) == nullptr);
    PROBE(pvalloc(bytes) == nullptr);
  }
  errno = 0;
  PROBE(std::calloc(absurd / 2, 3) == nullptr && errno == ENOMEM);
  PROBE(std::calloc(3, absurd / 2) == nullptr);
}

void alignments(Arguments) {
  void* out = nullptr;
  PROBE(posix_memalign(&out, 3, 8) == EINVAL);
  PROBE(posix_memalign(&out, 4, 8) == EINVAL);  // below a pointer's size
  PROBE(posix_memalign(&out, 0, 8) == EINVAL);
  for (std::size_t alignment = 8; alignment <= std::size_t{64} << 20; alignment *= 2) {
    for (std::size_t bytes : {std::size_t{1}, alignment - 1, alignment, alignment * 2 + 17}) {
      PROBE(posix_memalign(&out, alignment, bytes) == 0 && aligned(out, alignment));
      std::memset(out, 1, bytes < 1 << 20 ? bytes : 1 << 20);
      PROBE(malloc_usable_size(out) >= bytes);
      std::free(out);
      out = std::aligned_alloc(alignment, bytes);  // glibc takes sizes that are no multiples
      PROBE(out != nullptr && aligned(out, alignment));
      void* second = memalign(alignment, bytes);
      PROBE(second != nullptr && aligned(second, alignment) && second != out);
      std::free(out);
      std::free(second);
    }
  }
  void* page = valloc(10);
  PROBE(aligned(page, 4096));
  std::free(page);
  page = pvalloc(10);
  PROBE(aligned(page, 4096) && malloc_usable_size(page) >= 4096);
  std::free(page);
}

// Every size to 64 KiB with every alignment to 64 KiB.
void sizes(Arguments arguments) {
  const long step = number(arguments, 0, 1);
  for (std::size_t bytes = 0; bytes <= 65536; bytes += static_cast<std::size_t>(step)) {
    auto* plain = static_cast<unsigned char*>(std::malloc(bytes));
    PROBE(plain != nullptr && aligned(plain, bytes >= 16 ? 16 : 8));
    const std::size_t usable = malloc_usable_size(plain);
    PROBE(usable >= bytes);
    plain[0] = 1;
    if (usable > 0) plain[usable - 1] = 2;
    for (std::size_t alignment = 16; alignment <= 65536; alignment *= 2) {
      auto* block = static_cast<unsigned char*>(memalign(alignment, bytes));
      PROBE(block != nullptr && aligned(block, alignment) && block != plain);
      if (bytes > 0) block[0] = block[bytes - 1] = 3;
      std::free(block);
    }
    PROBE(usable == 0 || plain[usable - 1] == 2);
    std::free(plain);
  }
}

// calloc of memory that was dirty before.
void zeroed(Arguments) {
  for (std::size_t bytes :
       {std::size_t{24}, std::size_t{1000}, std::size_t{9000}, std::size_t{40000},
        std::size_t{300000}, std::size_t{3} << 20, std::size_t{33} << 20}) {
    for (int round = 0; round < 4; ++round) {
      void* dirty[3];
      for (void*& block : dirty) {
        block = std::malloc(bytes);
        std::memset(block, 0xEE, bytes);
      }
      for (void* block : dirty) std::free(block);
      for (void*& block : dirty) {
        block = std::calloc(1, bytes);
        PROBE(all_bytes(block, bytes, 0));
        std::memset(block, 0xEE, bytes);
      }
      for (void* block : dirty) std::free(block);
    }
  }
}

void pattern(unsigned char* at, std::size_t from, std::size_t to, unsigned seed) {
  for (std::size_t i = from; i < to; ++i)
    at[i] = static_cast<unsigned char>(i * 31 + seed + (i >> 12));
}
bool has_pattern(const unsigned char* at, std::size_t bytes, unsigned seed) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != static_cast<unsigned char>(i * 31 + seed + (i >> 12))) return false;
  }
  return true;
}

// Contents survive growing and shrinking through every kind of block, with neighbours in the way or
// not.
void reallocations(Arguments) {
  for (bool obstacles : {false, true}) {
    std::size_t bytes = 10;
    auto* block = static_cast<unsigned char*>(std::malloc(bytes));
    pattern(block, 0, bytes, 5);
    void* in_the_way[64];
    int count = 0;
    while (bytes < std::size_t{40} << 20) {
      const std::size_t grown = bytes + bytes / 2 + 3;
      if (obstacles && count < 64) in_the_way[count++] = std::malloc(bytes + 1);
      block = static_cast<unsigned char*>(std::realloc(block, grown));
      PROBE(has_pattern(block, bytes, 5));
      PROBE(malloc_usable_size(block) >= grown);
      pattern(block, bytes, grown, 5);
      bytes = grown;
    }
    while (bytes > 10) {
      const std::size_t less = bytes / 3 + 1;
      block = static_cast<unsigned char*>(std::realloc(block, less));
      PROBE(has_pattern(block, less, 5));
      bytes = less;
    }
    std::free(block);
    while (count > 0) std::free(in_the_way[--count]);
  }
}

void errno_kept(Arguments) {
  for (std::size_t bytes : {std::size_t{10}, std::size_t{50000}, std::size_t{200} << 20}) {
    void* block = std::malloc(bytes);
    std::memset(block, 1, 10);
    errno = 1234;
    std::free(block);
    PROBE(errno == 1234);
  }
}

// ---- C++

int handler_calls = 0;
void handler() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

void operators(Arguments) {
  struct alignas(256) Wide {
    char bytes[300];
  };
  for (int round = 0; round < 100; ++round) {
    delete new int(5);
    delete[] new char[100];
    delete new (std::nothrow) int(5);
    delete[] new (std::nothrow) char[100];
    auto* wide = new Wide;
    PROBE(aligned(wide, 256));
    delete wide;
    auto* wides = new Wide[3];
    PROBE(aligned(wides, 256));
    delete[] wides;
    auto* quiet = new (std::nothrow) Wide;
    PROBE(aligned(quiet, 256));
    ::operator delete (quiet, std::align_val_t{256}, std::nothrow);
    ::operator delete[](::operator new[](77, std::align_val_t{64}, std::nothrow),
                        std::align_val_t{64}, std::nothrow);
    ::operator delete (::operator new(33), std::size_t{33});
    ::operator delete[](::operator new[](33), std::size_t{33});
    ::operator delete(::operator new(33), std::nothrow);
    ::operator delete[](::operator new[](33), std::nothrow);
    ::operator delete (::operator new (1000, std::align_val_t{512}), 1000, std::align_val_t{512});
    ::operator delete[](::operator new[](1000, std::align_val_t{512}), 1000, std::align_val_t{512});
    ::operator delete[](::operator new[](1000, std::align_val_t{512}), std::align_val_t{512});
  }
  bool thrown = false;
  try {
    ::operator delete(::operator new(absurd / 4));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  PROBE(thrown);
  PROBE(::operator new(absurd / 4, std::nothrow) == nullptr);
  PROBE(::operator new (absurd / 4, std::align_val_t{64}, std::nothrow) == nullptr);
  std::set_new_handler(handler);
  PROBE(::operator new(absurd / 4, std::nothrow) == nullptr);
  PROBE(handler_calls == 3);  // called until it took itself away
}

// ---- The first call of a process. The loader may have allocated; our own start-up code has not.

void first(Arguments arguments) {
  const char* name = arguments.empty() ? "" : arguments[0];
  const auto is = [&](const char* other) { return std::strcmp(name, other) == 0; };
  void* block = nullptr;
  if (is("malloc")) block = std::malloc(40);
  if (is("calloc")) block = std::calloc(4, 10);
  if (is("realloc")) block = std::realloc(nullptr, 40);
  if (is("aligned_alloc")) block = std::aligned_alloc(64, 64);
  if (is("memalign")) block = memalign(128, 40);
  if (is("posix_memalign")) PROBE(posix_memalign(&block, 64, 40) == 0);
  if (is("valloc")) block = valloc(40);
  if (is("pvalloc")) block = pvalloc(40);
  if (is("new")) block = ::operator new(40);
  if (is("medium")) block = std::malloc(100000);
  if (is("large")) block = std::malloc(10 << 20);
  if (is("free")) return std::free(nullptr);
  if (is("malloc_usable_size")) {
    PROBE(malloc_usable_size(nullptr) == 0);
    return;
  }
  if (is("malloc_trim")) {
    malloc_trim(0);
    return;
  }
  PROBE(block != nullptr);
  std::memset(block, 1, 40);
  std::free(block);
}

// A program that reaches the C library's own names gets the same heap.
void libc_names(Arguments) {
  using Malloc = void* (*)(std::size_t);
  using Free = void (*)(void*);
  auto* libc_malloc = reinterpret_cast<Malloc>(dlsym(RTLD_DEFAULT, "__libc_malloc"));
  auto* libc_free = reinterpret_cast<Free>(dlsym(RTLD_DEFAULT, "__libc_free"));
  PROBE(libc_malloc != nullptr && libc_free != nullptr);
  for (int i = 0; i < 1000; ++i) {
    std::free(libc_malloc(100));
    libc_free(std::malloc(100));
  }
}

constexpr Experiment kExperiments[] = {
    {"zero_sizes", zero_sizes}, {"overflow", overflow},   {"alignments", alignments},
    {"sizes", sizes},           {"zeroed", zeroed},       {"reallocations", reallocations},
    {"errno_kept", errno_kept}, {"operators", operators}, {"first", first},
    {"libc_names", libc_names},
};

}  // namespace

std::span<const Experiment> contract_experiments() {
  return kExperiments;
}

}  // namespace probe
