// Which sizes come back? A small table of the sizes asked for lately, with the turn of each.
//
// A hash of the size chooses a row of eight; in a full row the size not asked for longest goes. So
// the table never grows and may forget, never invent. Cost: two cache lines. Threads: none, the
// owner locks.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>

namespace plimsoll::memory {

class RecentSizes {
 public:
  // True when `size` was asked for at most `within` turns ago; remembers it for the next time.
  bool came_back(std::int64_t size, std::int64_t turn, std::int64_t within) {
    const auto hash = static_cast<std::uint64_t>(size) * 0x9e3779b97f4a7c15U;
    Row& row = rows_[hash >> (64 - kRowBits)];
    const auto same = std::find_if(row.begin(), row.end(),
                                   [&](const Entry& entry) { return entry.size == size; });
    const bool known = same != row.end() && turn - same->turn <= within;
    const auto place = same != row.end() ? same : std::min_element(row.begin(), row.end());
    *place = {turn, size};
    return known;
  }

 private:
  static constexpr int kRowBits = 8;
  struct Entry {
    std::int64_t turn = 0;
    std::int64_t size = 0;
    auto operator<=>(const Entry&) const = default;
  };
  using Row = std::array<Entry, 8>;
  std::array<Row, std::size_t{1} << kRowBits> rows_{};
};

}  // namespace plimsoll::memory
