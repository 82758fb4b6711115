// Free ranges of reserved addresses, joined on return.
//
// What is taken lies in the middle of the largest free range, so that it has room to grow behind
// it. Addresses are plentiful (many times the device's memory) and taken only when something is
// mapped, so an ordered map is fast enough.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "plimsoll/base/check.h"

namespace plimsoll::memory {

class AddressRanges {
 public:
  void give(std::uint64_t begin, std::int64_t size) {
    std::uint64_t end = begin + static_cast<std::uint64_t>(size);
    auto after = free_.lower_bound(begin);
    if (after != free_.end() && after->first == end) {
      end = after->second;
      after = free_.erase(after);
    }
    if (after != free_.begin() && std::prev(after)->second == begin) {
      std::prev(after)->second = end;
    } else {
      free_.emplace(begin, end);
    }
  }

  std::optional<std::uint64_t> take(std::int64_t size) {
    std::uint64_t begin = 0;
    std::uint64_t room = 0;
    for (const auto& [low, high] : free_) {
      if (high - low <= room) continue;
      begin = low;
      room = high - low;
    }
    if (room < static_cast<std::uint64_t>(size)) return std::nullopt;
    const std::uint64_t at = begin + (room - static_cast<std::uint64_t>(size)) / 2 / kUnit * kUnit;
    PLIMSOLL_CHECK(take_at(at, size));
    return at;
  }

  // Takes exactly [begin, begin + size), if it is free.
  bool take_at(std::uint64_t begin, std::int64_t size) {
    const auto found = range_of(begin, size);
    if (found == free_.end()) return false;
    const std::uint64_t low = found->first;
    const std::uint64_t high = found->second;
    const std::uint64_t end = begin + static_cast<std::uint64_t>(size);
    free_.erase(found);
    if (low < begin) free_.emplace(low, begin);
    if (end < high) free_.emplace(end, high);
    return true;
  }

  // Bytes free from `begin` on.
  std::int64_t room_at(std::uint64_t begin) const {
    const auto found = free_.find(begin);
    return found == free_.end() ? 0 : static_cast<std::int64_t>(found->second - begin);
  }

 private:
  std::map<std::uint64_t, std::uint64_t>::iterator range_of(std::uint64_t begin,
                                                            std::int64_t size) {
    auto found = free_.upper_bound(begin);
    if (found == free_.begin()) return free_.end();
    --found;
    return found->second >= begin + static_cast<std::uint64_t>(size) ? found : free_.end();
  }

  static constexpr std::uint64_t kUnit = 64 << 20;
  std::map<std::uint64_t, std::uint64_t> free_;
};

}  // namespace plimsoll::memory
