// The operators new and delete of a program that measures, over its own malloc and free.
//
// The C++ runtime's call malloc anyway. But an allocator that was preloaded brings operators that
// go straight to its blocks, past allocation_calls.cpp, and what C++ takes would not be counted.
// All of them stand here: one left out would be the preloaded allocator's.
#ifndef PLIMSOLL_SANITIZED

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t most = bytes > 0 ? bytes : 1;
  return alignment == 0 ? std::malloc(most) : ::memalign(alignment, most);
}

void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  for (;;) {
    if (void* const block = take(bytes, alignment)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void* take_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  try {
    return take_or_throw(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

constexpr std::size_t of(std::align_val_t alignment) {
  return static_cast<std::size_t>(alignment);
}

}  // namespace

void* operator new(std::size_t bytes) {
  return take_or_throw(bytes, 0);
}
void* operator new[](std::size_t bytes) {
  return take_or_throw(bytes, 0);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return take_or_null(bytes, 0);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return take_or_null(bytes, 0);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, of(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, of(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take_or_null(bytes, of(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment,
                     const std::nothrow_t&) noexcept {
  return take_or_null(bytes, of(alignment));
}

void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete[](void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept {
  std::free(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}

#endif
