#include "plimsoll/pack/heuristics/order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "plimsoll/pack/heuristics/stable_log.h"

namespace plimsoll::pack {
namespace {

// Maximum of `load` over every body's span, by a sparse walk: a table of powers of two would take
// n log n memory, blocks of 64 sections take n / 64 log n.
class SpanMaximum {
 public:
  explicit SpanMaximum(std::span<const std::int64_t> values) : values_(values) {
    levels_.emplace_back((values.size() + kWidth - 1) / kWidth, 0);
    for (std::size_t i = 0; i < values.size(); ++i)
      levels_[0][i / kWidth] = std::max(levels_[0][i / kWidth], values[i]);
    for (std::size_t step = 1; 2 * step <= levels_[0].size(); step *= 2) {
      const auto& below = levels_.back();
      std::vector<std::int64_t> level(levels_[0].size() - 2 * step + 1);
      for (std::size_t i = 0; i < level.size(); ++i) level[i] = std::max(below[i], below[i + step]);
      levels_.push_back(std::move(level));
    }
  }
  std::int64_t operator()(std::size_t from, std::size_t to) const {
    std::int64_t most = 0;
    while (from < to && from % kWidth != 0) most = std::max(most, values_[from++]);
    while (from < to && to % kWidth != 0) most = std::max(most, values_[--to]);
    if (from >= to) return most;
    const std::size_t a = from / kWidth;
    const std::size_t b = to / kWidth;
    const auto level = static_cast<std::size_t>(std::bit_width(b - a) - 1);
    return std::max({most, levels_[level][a], levels_[level][b - (std::size_t{1} << level)]});
  }

 private:
  static constexpr std::size_t kWidth = 64;
  std::span<const std::int64_t> values_;
  std::vector<std::vector<std::int64_t>> levels_;
};

}  // namespace

const char* name(Order order) {
  constexpr const char* kNames[] = {"width", "area",       "total-width", "total-area",
                                    "size",  "area-width", "long-area"};
  return kNames[static_cast<std::size_t>(order)];
}

std::vector<std::int64_t> loads(const BodyModel& model) {
  std::vector<std::int64_t> load(static_cast<std::size_t>(model.sections) + 1, 0);
  for (const Body& body : model.bodies) {
    load[static_cast<std::size_t>(body.first)] += body.height;
    load[static_cast<std::size_t>(body.last)] -= body.height;
  }
  std::partial_sum(load.begin(), load.end(), load.begin());
  load.pop_back();
  return load;
}

std::vector<float> priorities(const BodyModel& model, Order order) {
  if (order == Order::kAreaWidth) return weighted_priorities(model, 2);
  if (order == Order::kLongArea) return weighted_priorities(model, 4);
  std::vector<float> out(model.bodies.size());
  const std::vector<std::int64_t> load = loads(model);
  const SpanMaximum most(load);
  const double peak = std::max<double>(1, static_cast<double>(most(0, load.size())));
  for (std::size_t b = 0; b < out.size(); ++b) {
    const Body& body = model.bodies[b];
    const double width = stable_log2(body.duration);
    const double size = stable_log2(static_cast<double>(body.height));
    double value = 0;
    switch (order) {
      case Order::kWidth:
        value = width * 1000 + size;
        break;
      case Order::kArea:
        value = (width + size) * 1000 + width;
        break;
      case Order::kAreaWidth:
      case Order::kLongArea:
        break;
      case Order::kSize:
        value = size * 1000 + width;
        break;
      case Order::kTotalWidth:
      case Order::kTotalArea: {
        const auto total =
            most(static_cast<std::size_t>(body.first), static_cast<std::size_t>(body.last));
        value = static_cast<double>(total) / peak * 1e5 + width;
        if (order == Order::kTotalArea) value += size;
        break;
      }
    }
    out[b] = static_cast<float>(value);
  }
  return out;
}

std::vector<float> weighted_priorities(const BodyModel& model, double width_weight) {
  std::vector<float> out;
  out.reserve(model.bodies.size());
  for (const Body& body : model.bodies) {
    const double width = stable_log2(body.duration);
    const double size = stable_log2(static_cast<double>(body.height));
    out.push_back(static_cast<float>((width_weight * width + size) * 1000));
  }
  return out;
}

}  // namespace plimsoll::pack
