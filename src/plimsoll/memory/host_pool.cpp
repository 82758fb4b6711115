#include "plimsoll/memory/host_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "plimsoll/base/check.h"
#include "plimsoll/base/checked.h"

namespace plimsoll::memory {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kSlab = std::size_t{1} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::int64_t kLargestCut = 64 << 10;
constexpr std::int64_t kLargestBlock = std::int64_t{1} << 46;
constexpr std::uint64_t kUsed = 0x706c696d75736564;  // tells a live header from a freed one
constexpr std::uint64_t kFree = 0x706c696d66726565;

// Bucket b holds blocks of (8 + b % 8) * 2^(b / 8) * 64 / 8 bytes: 64, 72, 80, ... 128, 144, ...
// kept multiples of 64 by taking granules of 64 bytes instead of bytes.
int bucket_of(std::int64_t granules) {
  if (granules <= 8) return static_cast<int>(granules - 1);
  const int power = 63 - std::countl_zero(static_cast<std::uint64_t>(granules - 1));
  const int step = static_cast<int>((granules - 1) >> (power - 3)) - 8;
  return 8 * (power - 2) + step;
}

std::int64_t bucket_granules(int bucket) {
  if (bucket < 8) return bucket + 1;
  const int power = bucket / 8 + 2;
  return (std::int64_t{9 + bucket % 8}) << (power - 3);
}

void* map_memory(std::size_t size) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// Over-maps by one huge page and cuts both ends off, so that the block starts on one.
void* map_huge(std::size_t size) {
  auto* memory = static_cast<std::byte*>(map_memory(size + kHugePage));
  if (memory == nullptr) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  if (before > 0) ::munmap(memory, before);
  ::munmap(memory + before + size, kHugePage - before);
  ::madvise(memory + before, size, MADV_HUGEPAGE);
  return memory + before;
}

}  // namespace

struct alignas(kAlignment) HostPool::Header {
  std::uint64_t state = kFree;
  std::int64_t requested = 0;
  std::size_t mapped = 0;  // bytes of its own mapping, 0 when cut from a slab
  Header* next = nullptr;
  int bucket = 0;
};

HostPool::~HostPool() {
  trim();
  for (const Mapping& slab : slabs_) ::munmap(slab.base, slab.size);
}

HostPool::Header* HostPool::cut_from_slab(int bucket, Bytes size) {
  const auto need = static_cast<std::size_t>(size.value) + sizeof(Header);
  if (slabs_.empty() || slab_used_ + need > kSlab) {
    void* base = map_memory(kSlab);
    if (base == nullptr) return nullptr;
    slabs_.push_back({base, kSlab});
    slab_used_ = 0;
    statistics_.held += Bytes(kSlab);
  }
  auto* header = new (static_cast<std::byte*>(slabs_.back().base) + slab_used_) Header;
  slab_used_ += need;
  header->bucket = bucket;
  return header;
}

HostPool::Header* HostPool::take_from_system(int bucket, Bytes size) {
  const auto need = static_cast<std::size_t>(size.value) + sizeof(Header);
  const bool huge = need >= kHugePage;
  const auto mapped =
      static_cast<std::size_t>(round_up(static_cast<std::int64_t>(need), huge ? kHugePage : 4096));
  void* memory = huge ? map_huge(mapped) : map_memory(mapped);
  if (memory == nullptr) return nullptr;
  auto* header = new (memory) Header;
  header->mapped = mapped;
  header->bucket = bucket;
  statistics_.held += Bytes(static_cast<std::int64_t>(mapped));
  return header;
}

void* HostPool::allocate(Bytes size) {
  if (size.value < 0 || size.value > kLargestBlock) return nullptr;
  const std::int64_t granules = std::max<std::int64_t>(1, ceil_div(size.value, kAlignment));
  const int bucket = bucket_of(granules);
  const std::lock_guard lock(mutex_);
  ++statistics_.allocations;
  Header* header = free_[static_cast<std::size_t>(bucket)];
  if (header != nullptr) {
    free_[static_cast<std::size_t>(bucket)] = header->next;
    ++statistics_.recycled;
  } else {
    const Bytes rounded(bucket_granules(bucket) * static_cast<std::int64_t>(kAlignment));
    header = rounded.value <= kLargestCut ? cut_from_slab(bucket, rounded)
                                          : take_from_system(bucket, rounded);
    if (header == nullptr) return nullptr;
    statistics_.peak_held = std::max(statistics_.peak_held, statistics_.held);
  }
  header->state = kUsed;
  header->requested = size.value;
  statistics_.in_use += size;
  statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
  return header + 1;
}

void HostPool::free(void* pointer) {
  if (pointer == nullptr) return;
  Header* header = static_cast<Header*>(pointer) - 1;
  const std::lock_guard lock(mutex_);
  PLIMSOLL_CHECK(header->state == kUsed, "host pool: freed twice, or not from this pool");
  header->state = kFree;
  statistics_.in_use -= Bytes(header->requested);
  Header*& head = free_[static_cast<std::size_t>(header->bucket)];
  header->next = head;
  head = header;
}

Bytes HostPool::trim() {
  const std::lock_guard lock(mutex_);
  Bytes given_back{0};
  for (Header*& head : free_) {
    Header* kept = nullptr;
    while (head != nullptr) {
      Header* next = head->next;
      if (head->mapped > 0) {
        given_back += Bytes(static_cast<std::int64_t>(head->mapped));
        ::munmap(head, head->mapped);
      } else {
        head->next = kept;
        kept = head;
      }
      head = next;
    }
    head = kept;
  }
  statistics_.held -= given_back;
  return given_back;
}

HostPoolStatistics HostPool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void HostPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  statistics_.peak_in_use = statistics_.in_use;
  statistics_.peak_held = statistics_.held;
}

}  // namespace plimsoll::memory
