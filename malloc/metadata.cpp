#include "metadata.h"

#include <cstdint>

#include "kernel.h"

namespace plimsoll::heap {
namespace {

constinit std::uintptr_t next = 0;
constinit std::uintptr_t end = 0;
constinit std::size_t total = 0;

}  // namespace

void* metadata_bytes(std::size_t bytes, std::size_t alignment) {
  std::uintptr_t at = round_up(next, alignment);
  if (next == 0 || at + bytes > end) {
    constexpr std::size_t kChunk = 256 << 10;
    const std::size_t chunk = round_up(bytes > kChunk ? bytes : kChunk, kKernelPage);
    void* fresh = reserve_addresses(chunk, kKernelPage);
    if (fresh == nullptr) return nullptr;
    if (!commit(fresh, chunk)) {
      release_addresses(fresh, chunk);
      return nullptr;
    }
    at = reinterpret_cast<std::uintptr_t>(fresh);
    end = at + chunk;
  }
  next = at + bytes;
  total += bytes;
  return reinterpret_cast<void*>(at);
}

std::size_t metadata_total() {
  return total;
}

}  // namespace plimsoll::heap
