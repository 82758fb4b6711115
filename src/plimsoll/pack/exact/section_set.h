// A set of sections, as the exact search blames failures on them.
//
// 256 buckets, one bit each: up to 256 sections every section has its own, beyond that neighbours
// share one. A bucket that is in the set stands for all of its sections, so a set may say too much,
// never too little; that is the safe side for blame. All operations take constant time and no
// memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace plimsoll::pack {

class SectionSet {
 public:
  static constexpr std::int32_t kBuckets = 256;
  struct Hull {  // buckets [begin, end)
    std::uint16_t begin = 0;
    std::uint16_t end = 0;
  };

  void add(std::int32_t bucket) {
    words_[static_cast<std::size_t>(bucket) / 64] |= std::uint64_t{1} << (bucket % 64);
  }
  void add(const SectionSet& other) {
    for (std::size_t k = 0; k < words_.size(); ++k) words_[k] |= other.words_[k];
  }
  void add(Hull hull) {
    for (std::int32_t bucket = hull.begin; bucket < hull.end; ++bucket) add(bucket);
  }
  bool meets(const SectionSet& other) const {
    std::uint64_t common = 0;
    for (std::size_t k = 0; k < words_.size(); ++k) common |= words_[k] & other.words_[k];
    return common != 0;
  }
  Hull hull() const {
    std::size_t low = 0;
    std::size_t high = words_.size();
    while (low < high && words_[low] == 0) ++low;
    while (high > low && words_[high - 1] == 0) --high;
    if (low == high) return {};
    return {static_cast<std::uint16_t>(low * 64 +
                                       static_cast<std::size_t>(std::countr_zero(words_[low]))),
            static_cast<std::uint16_t>(
                high * 64 - static_cast<std::size_t>(std::countl_zero(words_[high - 1])))};
  }

 private:
  std::array<std::uint64_t, kBuckets / 64> words_{};
};

}  // namespace plimsoll::pack
