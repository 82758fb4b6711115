#include "plimsoll/pack/heuristics/two_ended.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/base/checked.h"
#include "plimsoll/pack/heuristics/skyline.h"

namespace plimsoll::pack {
namespace {

struct Side {
  BodyModel model;
  std::vector<std::uint32_t> bodies;
  std::vector<std::int64_t> places;
};

Side take_side(const BodyModel& boxed, bool back) {
  Side side;
  side.model = boxed;
  side.model.bodies.clear();
  for (std::uint32_t b = 0; b < boxed.bodies.size(); ++b) {
    if ((boxed.bodies[b].end == ArenaEnd::kBack) != back) continue;
    side.bodies.push_back(b);
    side.model.bodies.push_back(boxed.bodies[b]);
    Body& body = side.model.bodies.back();
    if (back) body.height = round_up(body.height, body.modulus);
  }
  return side;
}

// Height of the stack in every section.
std::vector<std::int64_t> profile(const Side& side) {
  // Later tops win only where they are higher: sweep bodies by ascending top and paint.
  std::vector<std::int64_t> tops(static_cast<std::size_t>(side.model.sections), 0);
  std::vector<std::uint32_t> order(side.bodies.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto top = [&](std::uint32_t k) { return side.places[k] + side.model.bodies[k].height; };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return top(a) > top(b); });
  std::vector<std::int32_t> next(tops.size() + 1);  // the next section not painted yet
  std::iota(next.begin(), next.end(), 0);
  const auto find = [&](std::int32_t s) {
    while (next[static_cast<std::size_t>(s)] != s) {
      auto& up = next[static_cast<std::size_t>(s)];
      up = next[static_cast<std::size_t>(up)];
      s = up;
    }
    return s;
  };
  for (const std::uint32_t k : order) {
    const Body& body = side.model.bodies[k];
    for (auto s = find(body.first); s < body.last; s = find(s)) {
      tops[static_cast<std::size_t>(s)] = top(k);
      next[static_cast<std::size_t>(s)] = s + 1;
    }
  }
  return tops;
}

}  // namespace

std::optional<std::vector<std::int64_t>> place_two_ended(const BodyModel& boxed, Order order,
                                                         bool guided) {
  Side front = take_side(boxed, false);
  Side back = take_side(boxed, true);
  std::int64_t alignment = 1;
  for (const Body& body : back.model.bodies) {
    if (body.fixed >= 0 || body.residue != 0 || boxed.slab > 0) return std::nullopt;
    const auto common =
        checked_multiply(alignment / std::gcd(alignment, body.modulus), body.modulus);
    if (!common || *common > kLargest / 4) return std::nullopt;
    alignment = *common;
  }
  for (Side* side : {&front, &back}) {
    Skyline skyline(side->model);
    const PassRules rules{.guided = guided, .snug = false, .level = false};
    skyline.pass(priorities(side->model, order), rules, side->places);
  }
  const auto below = profile(front);
  const auto above = profile(back);
  std::int64_t height = 0;
  for (std::size_t s = 0; s < below.size(); ++s) height = std::max(height, below[s] + above[s]);
  height = round_up(height, alignment);
  std::vector<std::int64_t> places(boxed.bodies.size());
  for (std::size_t k = 0; k < front.bodies.size(); ++k) places[front.bodies[k]] = front.places[k];
  for (std::size_t k = 0; k < back.bodies.size(); ++k) {
    places[back.bodies[k]] = height - back.places[k] - back.model.bodies[k].height;
  }
  return places;
}

}  // namespace plimsoll::pack
