// The 20 replaceable operators of C++. Left out, one of them would pair our new with another
// library's delete.
//
// This library does not depend on the C++ runtime. A program whose new fails has one, or it could
// not catch what is thrown: its handler and its std::bad_alloc are found when they are needed, also
// where it was opened by a plug-in.
#include <dlfcn.h>

#include <new>

#include "blocks.h"
#include "text.h"

using namespace plimsoll::heap;

namespace {

void* runtime_function(const char* name) {
  if (void* found = ::dlsym(RTLD_DEFAULT, name)) return found;
  void* runtime = ::dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return runtime == nullptr ? nullptr : ::dlsym(runtime, name);
}

// Calls the program's new-handler; false when it has none.
bool handler_made_room() {
  using Get = void (*(*)())();
  auto* get = reinterpret_cast<Get>(runtime_function("_ZSt15get_new_handlerv"));
  void (*handler)() = get == nullptr ? nullptr : get();
  if (handler == nullptr) return false;
  handler();
  return true;
}

void* create(std::size_t bytes, std::size_t alignment) {
  while (true) {
    void* block = alignment <= kWord ? allocate(bytes) : allocate_aligned(bytes, alignment);
    if (block != nullptr) [[likely]]
      return block;
    if (handler_made_room()) continue;
    auto* fail = reinterpret_cast<void (*)()>(runtime_function("_ZSt17__throw_bad_allocv"));
    if (fail != nullptr) fail();
    die("operator new", nullptr, "there is no memory, and no C++ runtime to say so to");
  }
}

inline void* create(std::size_t bytes) {
  void* block = allocate_fast(bytes);
  return block != nullptr ? block : create(bytes, kWord);
}

// A handler that throws ends in the same way as in libstdc++: the exception does not pass.
void* create_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  while (true) {
    void* block = alignment <= kWord ? allocate(bytes) : allocate_aligned(bytes, alignment);
    if (block != nullptr || !handler_made_room()) return block;
  }
}

std::size_t of(std::align_val_t alignment) {
  return static_cast<std::size_t>(alignment);
}

}  // namespace

#pragma GCC visibility push(default)
void* operator new(std::size_t bytes) {
  return create(bytes);
}
void* operator new[](std::size_t bytes) {
  return create(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return create_or_null(bytes, kWord);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return create_or_null(bytes, kWord);
}
void* operator new(std::size_t bytes, std::align_val_t at) {
  return create(bytes, of(at));
}
void* operator new[](std::size_t bytes, std::align_val_t at) {
  return create(bytes, of(at));
}
void* operator new(std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept {
  return create_or_null(bytes, of(at));
}
void* operator new[](std::size_t bytes, std::align_val_t at, const std::nothrow_t&) noexcept {
  return create_or_null(bytes, of(at));
}

void operator delete(void* block) noexcept {
  release(block);
}
void operator delete[](void* block) noexcept {
  release(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept {
  release(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept {
  release(block);
}
void operator delete(void* block, std::size_t) noexcept {
  release(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  release(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  release(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
  release(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  release(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  release(block);
}
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  release(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  release(block);
}
#pragma GCC visibility pop
