#include "plimsoll/runtime/paging/resident_map.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "plimsoll/base/check.h"

namespace plimsoll::runtime {

std::optional<Offset> ResidentMap::hole(Bytes bytes, bool far_end) const {
  std::optional<Offset> out;
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;
  const auto look = [&](std::int64_t end) {
    const std::int64_t size = end - begin;
    if (size < bytes.value || (!far_end && size >= smallest)) return;
    smallest = size;
    out = Offset(far_end ? end - bytes.value : begin);
  };
  for (const Lying& lying : blocks_) {
    look(lying.at);
    begin = lying.end();
  }
  look(capacity_.value);
  return out;
}

std::optional<ResidentMap::Room> ResidentMap::room(Bytes bytes, bool far_end,
                                                   const Price& price) const {
  struct Row {
    std::int64_t begin;
    std::int64_t end;
    BlockId block;
    std::int64_t price;
  };
  std::vector<Row> rows;
  rows.reserve(blocks_.size());
  for (const Lying& lying : blocks_)
    rows.push_back({lying.at, lying.end(), lying.block, price(lying.block)});

  // The run [first, last) begins behind the block before it and ends where the next begins.
  const std::size_t count = rows.size();
  std::optional<std::pair<std::size_t, std::size_t>> best;
  std::int64_t best_price = kStays;
  std::int64_t best_bytes = 0;
  std::deque<std::size_t> dearest;  // of the run: prices fall from front to back
  std::int64_t held = 0;
  std::size_t last = 0;
  for (std::size_t first = 0; first <= count; ++first) {
    if (last < first) last = first;  // an empty run
    const std::int64_t begin = first == 0 ? 0 : rows[first - 1].end;
    const auto end_of = [&] { return last == count ? capacity_.value : rows[last].begin; };
    while (end_of() - begin < bytes.value && last < count) {
      while (!dearest.empty() && rows[dearest.back()].price <= rows[last].price) dearest.pop_back();
      dearest.push_back(last);
      held += rows[last].end - rows[last].begin;
      ++last;
    }
    if (end_of() - begin < bytes.value) break;
    const std::int64_t dear =
        dearest.empty() ? std::numeric_limits<std::int64_t>::min() : rows[dearest.front()].price;
    if (dear != kStays &&
        (!best || dear < best_price || (dear == best_price && held < best_bytes))) {
      best = {first, last};
      best_price = dear;
      best_bytes = held;
    }
    if (first == last) continue;
    if (!dearest.empty() && dearest.front() == first) dearest.pop_front();
    held -= rows[first].end - rows[first].begin;
  }
  if (!best) return std::nullopt;
  const std::int64_t begin = best->first == 0 ? 0 : rows[best->first - 1].end;
  const std::int64_t end = best->second == count ? capacity_.value : rows[best->second].begin;
  Room out{Offset(far_end ? end - bytes.value : begin), {}, best_price};
  for (std::size_t r = best->first; r < best->second; ++r) out.evicted.push_back(rows[r].block);
  return out;
}

std::optional<BlockId> ResidentMap::cheapest(const Price& price) const {
  std::optional<BlockId> out;
  std::int64_t least = kStays;
  for (const Lying& lying : blocks_) {
    const std::int64_t its = price(lying.block);
    if (its >= least) continue;
    least = its;
    out = lying.block;
  }
  return out;
}

std::vector<ResidentMap::Lying>::const_iterator ResidentMap::find(std::int64_t at) const {
  return std::lower_bound(blocks_.begin(), blocks_.end(), at,
                          [](const Lying& lying, std::int64_t place) { return lying.at < place; });
}

void ResidentMap::place(BlockId block, Offset at, Bytes bytes) {
  PLIMSOLL_CHECK(at.value >= 0 && at.value + bytes.value <= capacity_.value,
                 "a block was placed outside device memory");
  const auto behind = find(at.value);
  PLIMSOLL_CHECK(behind == blocks_.end() || behind->at >= at.value + bytes.value,
                 "a block was placed over the next");
  PLIMSOLL_CHECK(behind == blocks_.begin() || std::prev(behind)->end() <= at.value,
                 "a block was placed over the one before it");
  blocks_.insert(behind, Lying{at.value, block, bytes});
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
}

void ResidentMap::remove(Offset at) {
  const auto found = find(at.value);
  PLIMSOLL_CHECK(found != blocks_.end() && found->at == at.value,
                 "a block was removed that is not there");
  in_use_ -= found->bytes;
  blocks_.erase(found);
}

std::vector<BlockId> ResidentMap::blocks() const {
  std::vector<BlockId> out;
  for (const Lying& lying : blocks_) out.push_back(lying.block);
  return out;
}

}  // namespace plimsoll::runtime
