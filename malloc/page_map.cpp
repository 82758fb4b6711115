#include "page_map.h"

#include "kernel.h"

namespace plimsoll::heap {

constinit PageMap page_map;

bool PageMap::prepare(const void* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  if ((first + bytes - 1) >> kAddressBits != 0) return false;
  for (std::uintptr_t index = first >> 32; index <= (first + bytes - 1) >> 32; ++index) {
    if (root_[index].load(std::memory_order_relaxed) != 0) continue;
    constexpr std::size_t kLeafBytes = kLeafEntries * sizeof(Entry);
    void* fresh = reserve_addresses(kLeafBytes, kKernelPage);
    if (fresh == nullptr) return false;
    if (!commit(fresh, kLeafBytes)) {
      release_addresses(fresh, kLeafBytes);
      return false;
    }
    root_[index].store(
        reinterpret_cast<std::uintptr_t>(fresh) - reinterpret_cast<std::uintptr_t>(empty_),
        std::memory_order_release);
  }
  return true;
}

}  // namespace plimsoll::heap
