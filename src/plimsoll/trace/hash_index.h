// Finds the number of a thing by its hash: the things stand in an array of the caller's.
//
// Open addressing in a table that is half empty at least. An entry holds the whole hash, which
// tells strangers apart without looking at them. Cost: one cache line, mostly.
//
// A file that knows the hash could choose things that all meet in one place, and every lookup would
// walk past all of them. So a hash begins at salt(), which is drawn anew for every index: what the
// file chose meets in no place in particular. Numbers and order do not depend on it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "plimsoll/base/random.h"

namespace plimsoll::trace {

class HashIndex {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // What the hashes of things in this index begin with.
  std::uint64_t salt() const { return salt_; }
  static std::uint64_t mix(std::uint64_t hash, std::uint64_t more) { return mix64(hash ^ more); }

  // The number whose thing has this hash and for which same(number) says yes, or kNone.
  template <typename Same>
  std::uint32_t find(std::uint64_t hash, Same same) const {
    for (std::size_t at = hash & mask(); entries_[at].number != kNone; at = (at + 1) & mask()) {
      if (entries_[at].hash == hash && same(entries_[at].number)) return entries_[at].number;
    }
    return kNone;
  }

  // How many entries find() walks past at most: what an attack would raise.
  std::size_t longest_walk() const {
    std::size_t longest = 0;
    for (std::size_t at = 0; at < entries_.size(); ++at) {
      if (entries_[at].number != kNone)
        longest = std::max(longest, (at - entries_[at].hash) & mask());
    }
    return longest;
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
  static std::uint64_t drawn_salt() {
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
  }
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
  std::uint64_t salt_ = drawn_salt();
};

}  // namespace plimsoll::trace
