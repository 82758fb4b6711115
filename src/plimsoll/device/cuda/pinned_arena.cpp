#include "plimsoll/device/cuda/pinned_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "plimsoll/base/checked.h"
#include "plimsoll/device/cpu/free_memory.h"

namespace plimsoll::device::cuda {
namespace {

constexpr std::int64_t kLargePage = 2 << 20;
// Below it the driver is as quick.
constexpr std::size_t kMuch = std::size_t{256} << 20;
constexpr unsigned kMostThreads = 16;

// So many bytes from a large page's beginning; null where there are none.
std::byte* map_pages(std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  ::madvise(at, bytes, MADV_HUGEPAGE);  // a wish
  return static_cast<std::byte*>(at);
}

void touch_pages(std::byte* at, std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
  const std::size_t share = bytes / threads / kLargePage * kLargePage + kLargePage;
  const auto touch = [&](std::size_t begin) {
    for (std::size_t i = begin; i < std::min(bytes, begin + share); i += kPage)
      *static_cast<volatile std::byte*>(at + i) = std::byte{0};
  };
  std::vector<std::thread> others;
  for (std::size_t begin = share; begin < bytes; begin += share) others.emplace_back(touch, begin);
  touch(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

PinnedArena::~PinnedArena() {
  if (mapped_ == 0) {
    cudaFreeHost(data_);
    return;
  }
  cudaHostUnregister(data_);
  ::munmap(data_, mapped_);
}

bool PinnedArena::map_and_pin(std::size_t wanted) {
  const auto bytes =
      static_cast<std::size_t>(round_up(static_cast<std::int64_t>(wanted), kLargePage));
  std::byte* const at = map_pages(bytes);
  if (at == nullptr) return false;
  touch_pages(at, bytes);
  if (cudaHostRegister(at, bytes, cudaHostRegisterPortable) != cudaSuccess) {
    cudaGetLastError();
    ::munmap(at, bytes);
    return false;
  }
  data_ = at;
  mapped_ = bytes;
  return true;
}

cudaError_t PinnedArena::take(Bytes bytes) {
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(bytes.value, 1));
  size_ = bytes;
  if (wanted >= kMuch) {
    const auto free = free_memory();
    if (free && bytes <= free->bytes && map_and_pin(wanted)) return cudaSuccess;
  }
  void* at = nullptr;
  const cudaError_t code = cudaHostAlloc(&at, wanted, cudaHostAllocPortable);
  data_ = static_cast<std::byte*>(at);
  return code;
}

}  // namespace plimsoll::device::cuda
