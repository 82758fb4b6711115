// The memo of a pickle: place -> string or object, as runs.
//
// Python puts every dict, list, tuple and string into the memo, in the order in which it makes
// them, so place p + 1 nearly always holds the object made after that of place p. A run says so in
// 16 bytes for as long as it holds: ten million events are one run. Strings, which are fetched
// under the same place again and again, interrupt it a few hundred times.
//
// Places are set in order, with small gaps at most, as every pickler does it. Cost: set O(1); get
// one load for the first 65536 places, where keys, actions and frames stand, else a binary search
// among the runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plimsoll/trace/snapshot_records.h"

namespace plimsoll::trace {

class PickleMemo {
 public:
  std::uint64_t next_place() const { return size_; }

  // A problem, or empty.
  std::string_view set(std::uint64_t place, const Value& value) {
    if (value.type != ValueType::kObject && value.type != ValueType::kString) {
      return "a number in the memo, which snapshots do not need";
    }
    if (place < size_ || place > size_ + kWidestGap || place >= kMostPlaces) {
      return "a memo place out of order";
    }
    if (runs_.size() >= kMostRuns) return "a memo without order";
    while (size_ < place) add(Value{ValueType::kString, 0});
    add(value);
    return {};
  }

  // `place` must be below next_place().
  Value get(std::uint64_t place) const {
    if (place < direct_.size()) [[likely]]
      return unpack(direct_[place]);
    const auto after =
        std::upper_bound(runs_.begin(), runs_.end(), place,
                         [](std::uint64_t wanted, const Run& run) { return wanted < run.place; });
    const Run& run = *std::prev(after);
    const auto steps = static_cast<std::uint32_t>(place - run.place);
    return unpack(run.first + steps);
  }

 private:
  static constexpr std::uint64_t kDirect = 1 << 16;
  static constexpr std::uint64_t kWidestGap = 1024;
  static constexpr std::uint64_t kMostPlaces = std::uint64_t{1} << 28;
  static constexpr std::size_t kMostRuns = std::size_t{1} << 23;
  static constexpr std::uint32_t kObjectBit = std::uint32_t{1} << 31;
  struct Run {
    std::uint64_t place;
    std::uint32_t first;  // what the first place holds; the next ones hold the next objects
  };

  static Value unpack(std::uint32_t packed) {
    const bool object = (packed & kObjectBit) != 0;
    return Value{object ? ValueType::kObject : ValueType::kString, packed & ~kObjectBit};
  }
  void add(const Value& value) {
    const bool object = value.type == ValueType::kObject;
    const std::uint32_t packed = static_cast<std::uint32_t>(value.bits) | (object ? kObjectBit : 0);
    if (size_ < kDirect) direct_.push_back(packed);
    const auto steps = runs_.empty() ? 0 : static_cast<std::uint32_t>(size_ - runs_.back().place);
    const bool goes_on = object && !runs_.empty() && packed == runs_.back().first + steps;
    if (!goes_on) runs_.push_back({size_, packed});
    ++size_;
  }

  std::uint64_t size_ = 0;
  std::vector<std::uint32_t> direct_;
  std::vector<Run> runs_;
};

}  // namespace plimsoll::trace
