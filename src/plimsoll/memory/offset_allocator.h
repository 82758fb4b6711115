// Bookkeeping apart from memory: allocators over [0, N) that never touch it.
//
// All of them keep one contract, tested by one suite (offset_allocator_test.cpp):
//   allocate(size) gives an offset that is a multiple of 512, or nothing when it cannot; live
//     ranges never overlap and never pass N; a size of 0 takes one granule;
//   free(offset) takes the offset of a live range; anything else ends the program;
//   after all is freed, N bytes can be allocated in one piece again (buddy: the largest power of
//     two);
//   in_use() is the sum of rounded live sizes, high_water() the highest end ever given out.
//
//   name              finds                       frees             good for
//   BumpAllocator     the top                     the top, or all   phases, stacks of scratch
//   TlsfAllocator     good fit, constant time     joins at once     anything, bounded time
//   BuddyAllocator    power of two, lowest        with its buddy    few sizes, cheap joining
//   BestFitAllocator  best fit, lowest address    joins at once     tightest of the simple ones
//   ExactCache<A>     the same size again keeps it repeated sizes, on top of another
//
// Threads: none; the owner locks.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/check.h"
#include "plimsoll/base/units.h"
#include "plimsoll/memory/block_table.h"
#include "plimsoll/memory/fit_index.h"

namespace plimsoll::memory {

template <typename A>
concept OffsetAllocator = requires(A allocator, const A constant, Bytes size, Offset offset) {
  { allocator.allocate(size) } -> std::same_as<std::optional<Offset>>;
  {allocator.free(offset)};
  { constant.in_use() } -> std::same_as<Bytes>;
  { constant.high_water() } -> std::same_as<Bytes>;
  { constant.capacity() } -> std::same_as<Bytes>;
};

// What the five share: capacity and counts. Sizes are rounded to granules, checked.
class OffsetCounts {
 public:
  explicit OffsetCounts(Bytes capacity) : capacity_(Bytes(capacity.value / kGranule * kGranule)) {}
  Bytes in_use() const { return in_use_; }
  Bytes high_water() const { return high_water_; }
  Bytes capacity() const { return capacity_; }

 protected:
  // The size in whole granules, or nothing when it can never fit.
  std::optional<std::int64_t> rounded(Bytes size) const {
    if (size.value < 0 || size.value > capacity_.value) return std::nullopt;
    const std::int64_t whole = granules_of(size) << kGranuleBits;
    if (whole > capacity_.value) return std::nullopt;
    return whole;
  }
  void took(std::int64_t offset, std::int64_t size) {
    in_use_ += Bytes(size);
    if (offset + size > high_water_.value) high_water_ = Bytes(offset + size);
  }
  void gave(std::int64_t size) { in_use_ -= Bytes(size); }

 private:
  Bytes capacity_;
  Bytes in_use_{0};
  Bytes high_water_{0};
};

class BumpAllocator : public OffsetCounts {
 public:
  using OffsetCounts::OffsetCounts;
  std::optional<Offset> allocate(Bytes size);
  void free(Offset offset);

 private:
  struct Piece {
    std::int64_t offset;
    std::int64_t size;
    bool live;
  };
  std::vector<Piece> pieces_;  // in order of offset
};

class TlsfAllocator : public OffsetCounts {
 public:
  explicit TlsfAllocator(Bytes capacity);
  std::optional<Offset> allocate(Bytes size);
  void free(Offset offset);

 private:
  BlockTable blocks_;
  FitIndex free_;
  std::unordered_map<std::int64_t, BlockIndex> live_;
};

class BuddyAllocator : public OffsetCounts {
 public:
  explicit BuddyAllocator(Bytes capacity);
  std::optional<Offset> allocate(Bytes size);
  void free(Offset offset);

 private:
  static constexpr int kOrders = 48;
  std::vector<std::set<std::int64_t>> free_;  // by order: 512 << order
  std::unordered_map<std::int64_t, int> live_;
};

class BestFitAllocator : public OffsetCounts {
 public:
  explicit BestFitAllocator(Bytes capacity);
  std::optional<Offset> allocate(Bytes size);
  void free(Offset offset);

 private:
  void add_free(std::int64_t offset, std::int64_t size);
  void drop_free(std::map<std::int64_t, std::int64_t>::iterator at);

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::unordered_map<std::int64_t, std::int64_t> live_;
};

template <OffsetAllocator Inner>
class ExactCache {
 public:
  explicit ExactCache(Bytes capacity) : inner_(capacity) {}

  std::optional<Offset> allocate(Bytes size) {
    if (size.value < 0 || size.value > capacity().value) return std::nullopt;
    const std::int64_t granules = granules_of(size);
    const auto cached = cached_.find(granules);
    std::optional<Offset> offset;
    if (cached != cached_.end() && !cached->second.empty()) {
      offset = cached->second.back();
      cached->second.pop_back();
      cached_bytes_ -= Bytes(granules << kGranuleBits);
    } else {
      offset = inner_.allocate(size);
      if (!offset && cached_bytes_.value > 0) {
        flush();
        offset = inner_.allocate(size);
      }
    }
    if (offset) live_[offset->value] = granules;
    return offset;
  }
  void free(Offset offset) {
    const auto found = live_.find(offset.value);
    PLIMSOLL_CHECK(found != live_.end(), "exact cache: freed an offset that is not live");
    cached_[found->second].push_back(offset);
    cached_bytes_ += Bytes(found->second << kGranuleBits);
    live_.erase(found);
  }
  // Hands every cached range to the allocator below, which joins them.
  void flush() {
    for (auto& [granules, offsets] : cached_) {
      for (const Offset offset : offsets) inner_.free(offset);
      offsets.clear();
    }
    cached_bytes_ = Bytes(0);
  }
  Bytes in_use() const { return inner_.in_use() - cached_bytes_; }
  Bytes high_water() const { return inner_.high_water(); }
  Bytes capacity() const { return inner_.capacity(); }

 private:
  Inner inner_;
  std::unordered_map<std::int64_t, std::vector<Offset>> cached_;
  std::unordered_map<std::int64_t, std::int64_t> live_;
  Bytes cached_bytes_{0};
};

}  // namespace plimsoll::memory
