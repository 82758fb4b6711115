// The memo of failed search states: a set of 128-bit keys with a bound on its size.
//
// Open addressing in one flat array that doubles up to 2^22 entries (64 MiB); after that a new key
// takes the place of an old one in its neighbourhood. Forgetting costs time, never correctness.
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll::pack {

struct StateKey {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  bool operator==(const StateKey&) const = default;
};

class FailedStates {
 public:
  bool contains(StateKey key) const {
    if (slots_.empty()) return false;
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      const StateKey& slot = slots_[(key.a + probe) & (slots_.size() - 1)];
      if (slot == key) return true;
      if (slot == StateKey{}) return false;
    }
    return false;
  }

  void insert(StateKey key) {
    if (count_ * 2 >= slots_.size() && slots_.size() < kMostSlots) grow();
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      StateKey& slot = slots_[(key.a + probe) & (slots_.size() - 1)];
      if (slot == key) return;
      if (slot == StateKey{}) {
        slot = key;
        ++count_;
        return;
      }
    }
    slots_[(key.a + (key.b & (kProbes - 1))) & (slots_.size() - 1)] = key;
  }

  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  static constexpr std::size_t kProbes = 8;
  static constexpr std::size_t kMostSlots = std::size_t{1} << 22;

  void grow() {
    std::vector<StateKey> old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    count_ = 0;
    for (const StateKey& key : old) {
      if (key != StateKey{}) insert(key);
    }
  }

  std::vector<StateKey> slots_;
  std::size_t count_ = 0;
};

}  // namespace plimsoll::pack
