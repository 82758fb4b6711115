// The memo of failed search states: 128-bit keys, each with the stretch of sections the failure is
// blamed on, and a bound on their number.
//
// Open addressing in flat arrays that double up to 2^22 entries (80 MiB); after that a new key
// takes the place of an old one in its neighbourhood. Forgetting costs time, never correctness.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/exact/section_set.h"

namespace plimsoll::pack {

struct StateKey {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  bool operator==(const StateKey&) const = default;
};

class FailedStates {
 public:
  // What the failure of this state was blamed on; null when it is not known to fail.
  const SectionSet::Hull* find(StateKey key) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      const std::size_t at = (key.a + probe) & (slots_.size() - 1);
      if (slots_[at] == key) return &blamed_[at];
      if (slots_[at] == StateKey{}) return nullptr;
    }
    return nullptr;
  }

  void insert(StateKey key, SectionSet::Hull blamed) {
    if (count_ * 2 >= slots_.size() && slots_.size() < kMostSlots) grow();
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      const std::size_t at = (key.a + probe) & (slots_.size() - 1);
      if (slots_[at] == key) return;
      if (slots_[at] == StateKey{}) {
        slots_[at] = key;
        blamed_[at] = blamed;
        ++count_;
        return;
      }
    }
    const std::size_t victim = (key.a + (key.b & (kProbes - 1))) & (slots_.size() - 1);
    slots_[victim] = key;
    blamed_[victim] = blamed;
  }

  void clear() {
    slots_.clear();
    blamed_.clear();
    count_ = 0;
  }

 private:
  static constexpr std::size_t kProbes = 8;
  static constexpr std::size_t kMostSlots = std::size_t{1} << 22;

  void grow() {
    std::vector<StateKey> keys(slots_.empty() ? 1024 : slots_.size() * 2);
    std::vector<SectionSet::Hull> blamed(keys.size());
    keys.swap(slots_);
    blamed.swap(blamed_);
    count_ = 0;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (keys[k] != StateKey{}) insert(keys[k], blamed[k]);
    }
  }

  std::vector<StateKey> slots_;
  std::vector<SectionSet::Hull> blamed_;
  std::size_t count_ = 0;
};

}  // namespace plimsoll::pack
