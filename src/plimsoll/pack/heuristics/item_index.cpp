#include "plimsoll/pack/heuristics/item_index.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace plimsoll::pack {
namespace {

constexpr std::size_t kBlock = 16;
constexpr float kGone = -std::numeric_limits<float>::infinity();
constexpr std::int32_t kLoosePerOctave = 5000;  // of priority, where an octave of area is 1000

// Piecewise linear between powers of two.
std::int32_t log2_in_256ths(std::uint32_t x) {
  const int whole = std::bit_width(x) - 1;
  const auto part = static_cast<std::int32_t>((static_cast<std::uint64_t>(x) << 8 >> whole) - 256);
  return whole * 256 + part;
}

}  // namespace

void ItemIndex::load(const BodyModel& model, std::span<const std::uint32_t> bodies,
                     std::span<const float> priority) {
  const std::size_t n = bodies.size();
  body_.assign(bodies.begin(), bodies.end());
  first_item_.assign(static_cast<std::size_t>(model.sections) + 2, 0);
  priority_.resize(n);
  begin_.resize(n);
  end_.resize(n);
  height_.resize(n);
  std::int64_t spans = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const Body& body = model.bodies[body_[k]];
    ++first_item_[static_cast<std::size_t>(body.first) + 1];
    priority_[k] = priority[body_[k]];
    begin_[k] = body.first;
    end_[k] = body.last;
    height_[k] = body.height;
    spans += body.last - body.first;
  }
  std::partial_sum(first_item_.begin(), first_item_.end(), first_item_.begin());
  // Two fifths of the mean span count as nothing.
  loose_from_ =
      n == 0 ? 1 : static_cast<std::uint32_t>(spans * 2 / 5 / static_cast<std::int64_t>(n)) + 1;
  loose_octaves_ = log2_in_256ths(loose_from_);
  const std::size_t blocks = (n + kBlock - 1) / kBlock;
  leaves_ = std::bit_ceil(std::max<std::size_t>(blocks, 1));
  tree_.assign(2 * leaves_, {kGone, std::numeric_limits<std::int32_t>::max(), -1});
  for (std::size_t block = 0; block < blocks; ++block) summarize(block);
  for (std::size_t node = leaves_ - 1; node > 0; --node) tree_[node] = joined(node);
  work_ += static_cast<std::int64_t>(n) * 4;
}

void ItemIndex::summarize(std::size_t block) {
  Summary summary{kGone, std::numeric_limits<std::int32_t>::max(), -1};
  const std::size_t to = std::min(body_.size(), (block + 1) * kBlock);
  for (std::size_t k = block * kBlock; k < to; ++k) {
    if (priority_[k] == kGone) continue;
    summary.priority = std::max(summary.priority, priority_[k]);
    summary.least_end = std::min(summary.least_end, end_[k]);
    summary.greatest_end = std::max(summary.greatest_end, end_[k]);
  }
  tree_[leaves_ + block] = summary;
}

ItemIndex::Summary ItemIndex::joined(std::size_t node) const {
  const Summary& a = tree_[2 * node];
  const Summary& b = tree_[2 * node + 1];
  return {std::max(a.priority, b.priority), std::min(a.least_end, b.least_end),
          std::max(a.greatest_end, b.greatest_end)};
}

void ItemIndex::set_priority(std::int32_t item, float priority) {
  priority_[static_cast<std::size_t>(item)] = priority;
  const std::size_t block = static_cast<std::size_t>(item) / kBlock;
  summarize(block);
  for (std::size_t node = (leaves_ + block) / 2; node > 0; node /= 2) {
    const Summary now = joined(node);
    if (tree_[node] == now) break;
    tree_[node] = now;
  }
}

void ItemIndex::remove(std::int32_t item) {
  set_priority(item, kGone);
}
bool ItemIndex::removed(std::int32_t item) const {
  return priority(item) == kGone;
}

// What an item loses for the sections it leaves free at both sides of the valley. In whole numbers,
// so that the same item is picked on every machine.
float ItemIndex::looseness(std::int32_t left, std::int32_t right) const {
  const auto octaves = [&](std::int32_t free) {
    return log2_in_256ths(loose_from_ + static_cast<std::uint32_t>(free)) - loose_octaves_;
  };
  return static_cast<float>((octaves(left) + octaves(right)) * kLoosePerOctave / 256);
}

std::int32_t ItemIndex::best(const Want& want) {
  const std::int32_t last_begin = want.covering < 0 ? want.within.end : want.covering + 1;
  Query query{want, first_item_[static_cast<std::size_t>(want.within.begin)],
              first_item_[static_cast<std::size_t>(last_begin)], kGone, -1};
  search(query);
  return query.pick;
}

void ItemIndex::search_block(Query& query, std::size_t block) {
  const std::size_t from = std::max<std::size_t>(query.from, block * kBlock);
  const std::size_t to = std::min<std::size_t>(query.to, (block + 1) * kBlock);
  const Want& want = query.want;
  work_ += 4;
  for (std::size_t k = from; k < to; ++k) {
    if (priority_[k] <= query.best || end_[k] > want.within.end || end_[k] <= want.covering ||
        height_[k] > want.highest)
      continue;
    float worth = priority_[k];
    if (want.snug) worth -= looseness(begin_[k] - want.within.begin, want.within.end - end_[k]);
    if (worth <= query.best) continue;
    query.best = worth;
    query.pick = static_cast<std::int32_t>(k);
  }
}

void ItemIndex::search(Query& query) {
  if (query.from >= query.to) return;
  const std::size_t first = leaves_ + query.from / kBlock;
  const std::size_t last = leaves_ + (query.to - 1) / kBlock;
  const int up = std::bit_width(first ^ last);
  const std::size_t node = first >> up;
  const std::size_t width = kBlock << up;
  const std::size_t low = query.from / width * width;
  search(query, node, low, low + width);
}

void ItemIndex::search(Query& query, std::size_t node, std::size_t low, std::size_t high) {
  const Summary& summary = tree_[node];
  if (low >= query.to || high <= query.from || summary.least_end > query.want.within.end ||
      summary.greatest_end <= query.want.covering || summary.priority <= query.best)
    return;
  ++work_;
  if (node >= leaves_) return search_block(query, node - leaves_);
  const std::size_t middle = low + (high - low) / 2;
  if (tree_[2 * node].priority > tree_[2 * node + 1].priority) {
    search(query, 2 * node, low, middle);
    search(query, 2 * node + 1, middle, high);
  } else {
    search(query, 2 * node + 1, middle, high);
    search(query, 2 * node, low, middle);
  }
}

}  // namespace plimsoll::pack
