// BitRows: a matrix of bits, one row per value, one column per stage, with ranges and neighbours
// fast.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace plimsoll::schedule {

class BitRows {
 public:
  static constexpr std::int32_t kNone = -1;

  BitRows() = default;
  BitRows(std::size_t rows, std::size_t columns)
      : words_((columns + 63) / 64), bits_(rows * words_, 0) {}

  bool get(std::int32_t row, std::int32_t column) const {
    return (word(row, column >> 6) >> (column & 63)) & 1;
  }
  void set(std::int32_t row, std::int32_t column, bool value) {
    auto& w = word(row, column >> 6);
    const std::uint64_t bit = std::uint64_t{1} << (column & 63);
    w = value ? w | bit : w & ~bit;
  }
  // Columns [begin, end).
  void fill(std::int32_t row, std::int32_t begin, std::int32_t end, bool value) {
    while (begin < end) {
      const std::int32_t in_word = begin & 63;
      const std::int32_t take = std::min(64 - in_word, end - begin);
      const std::uint64_t mask = (take == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << take) - 1)
                                 << in_word;
      auto& w = word(row, begin >> 6);
      w = value ? w | mask : w & ~mask;
      begin += take;
    }
  }
  // The last set column <= from, or kNone.
  std::int32_t last_at_or_before(std::int32_t row, std::int32_t from) const {
    if (from < 0) return kNone;
    std::int32_t w = from >> 6;
    std::uint64_t bits = word(row, w) & (~std::uint64_t{0} >> (63 - (from & 63)));
    while (bits == 0) {
      if (--w < 0) return kNone;
      bits = word(row, w);
    }
    return w * 64 + 63 - std::countl_zero(bits);
  }
  // The first set (or clear) column >= from, or kNone.
  std::int32_t first_at_or_after(std::int32_t row, std::int32_t from, bool value = true) const {
    const std::uint64_t flip = value ? 0 : ~std::uint64_t{0};
    std::int32_t w = from >> 6;
    if (static_cast<std::size_t>(w) >= words_) return kNone;
    std::uint64_t bits = (word(row, w) ^ flip) & (~std::uint64_t{0} << (from & 63));
    while (bits == 0) {
      if (static_cast<std::size_t>(++w) >= words_) return kNone;
      bits = word(row, w) ^ flip;
    }
    return w * 64 + std::countr_zero(bits);
  }
  // The last clear column <= from, or kNone.
  std::int32_t last_clear_at_or_before(std::int32_t row, std::int32_t from) const {
    if (from < 0) return kNone;
    std::int32_t w = from >> 6;
    std::uint64_t bits = ~word(row, w) & (~std::uint64_t{0} >> (63 - (from & 63)));
    while (bits == 0) {
      if (--w < 0) return kNone;
      bits = ~word(row, w);
    }
    return w * 64 + 63 - std::countl_zero(bits);
  }
  // Calls visit(column) for every column set in both rows.
  template <typename Visit>
  void for_each_common(std::int32_t a, std::int32_t b, Visit visit) const {
    for (std::size_t w = 0; w < words_; ++w) {
      std::uint64_t both =
          word(a, static_cast<std::int32_t>(w)) & word(b, static_cast<std::int32_t>(w));
      for (; both != 0; both &= both - 1) {
        visit(static_cast<std::int32_t>(w) * 64 + std::countr_zero(both));
      }
    }
  }

 private:
  std::uint64_t& word(std::int32_t row, std::int32_t w) {
    return bits_[static_cast<std::size_t>(row) * words_ + static_cast<std::size_t>(w)];
  }
  std::uint64_t word(std::int32_t row, std::int32_t w) const {
    return bits_[static_cast<std::size_t>(row) * words_ + static_cast<std::size_t>(w)];
  }

  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_;
};

}  // namespace plimsoll::schedule
