// Finds the number of a thing by its hash: the things stand in an array of the caller's.
//
// Open addressing in a table that is half empty at least. An entry holds the whole hash, which
// tells strangers apart without looking at them. Cost: one cache line, mostly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll::trace {

class HashIndex {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // The number whose thing has this hash and for which same(number) says yes, or kNone.
  template <typename Same>
  std::uint32_t find(std::uint64_t hash, Same same) const {
    for (std::size_t at = hash & mask(); entries_[at].number != kNone; at = (at + 1) & mask()) {
      if (entries_[at].hash == hash && same(entries_[at].number)) return entries_[at].number;
    }
    return kNone;
  }

  // Nothing with this hash may be the same thing.
  void add(std::uint64_t hash, std::uint32_t number) {
    if (2 * (count_ + 1) > entries_.size()) grow();
    ++count_;
    place({hash, number});
  }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t number = kNone;
  };
  std::size_t mask() const { return entries_.size() - 1; }
  void place(const Entry& entry) {
    std::size_t at = entry.hash & mask();
    while (entries_[at].number != kNone) at = (at + 1) & mask();
    entries_[at] = entry;
  }
  void grow() {
    std::vector<Entry> old(2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.number != kNone) place(entry);
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(1024);
  std::size_t count_ = 0;
};

}  // namespace plimsoll::trace
