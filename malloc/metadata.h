// Memory for descriptors: never beside user data, never given back, zero when handed out.
//
// Descriptors come in few kinds and are used again by their owners, so a pointer that only moves
// forward is enough. Callers hold the span heap's lock.
#pragma once

#include <cstddef>
#include <new>

namespace plimsoll::heap {

void* metadata_bytes(std::size_t bytes, std::size_t alignment);  // null when there is no memory
std::size_t metadata_total();

template <typename T>
T* new_metadata() {
  void* at = metadata_bytes(sizeof(T), alignof(T));
  return at == nullptr ? nullptr : new (at) T;
}

}  // namespace plimsoll::heap
