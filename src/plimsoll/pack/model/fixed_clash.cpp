#include "plimsoll/pack/model/fixed_clash.h"

#include <algorithm>
#include <map>

#include "plimsoll/pack/model/pair_rules.h"

namespace plimsoll::pack {
namespace {

std::vector<BufferId> buffers_of(const BodyModel& model, std::uint32_t a, std::uint32_t b) {
  return {BufferId(model.pieces_of(a).front().buffer), BufferId(model.pieces_of(b).front().buffer)};
}

std::vector<BufferId> sweep(const BodyModel& model, std::vector<std::uint32_t> fixed) {
  std::sort(fixed.begin(), fixed.end(),
            [&](auto a, auto b) { return model.bodies[a].first < model.bodies[b].first; });
  std::map<std::int64_t, std::uint32_t> alive;  // by place
  std::multimap<std::int32_t, std::int64_t> leaving;
  for (const std::uint32_t b : fixed) {
    const Body& body = model.bodies[b];
    while (!leaving.empty() && leaving.begin()->first <= body.first) {
      alive.erase(leaving.begin()->second);
      leaving.erase(leaving.begin());
    }
    const auto above = alive.lower_bound(body.fixed);
    if (above != alive.end() && above->first < body.fixed + body.height)
      return buffers_of(model, above->second, b);
    if (above != alive.begin()) {
      const auto below = std::prev(above);
      if (below->first + model.bodies[below->second].height > body.fixed)
        return buffers_of(model, below->second, b);
    }
    alive.emplace(body.fixed, b);
    leaving.emplace(body.last, body.fixed);
  }
  return {};
}

std::vector<BufferId> ask_pairs(const BodyModel& model, const std::vector<std::uint32_t>& fixed) {
  std::vector<Forbidden> forbidden;
  for (std::size_t k = 0; k < fixed.size(); ++k) {
    for (std::size_t j = 0; j < k; ++j) {
      forbidden.clear();
      append_forbidden(model, fixed[j], fixed[k], forbidden);
      const std::int64_t difference = model.bodies[fixed[k]].fixed - model.bodies[fixed[j]].fixed;
      for (const Forbidden& range : forbidden) {
        if (range.begin < difference && difference < range.end)
          return buffers_of(model, fixed[j], fixed[k]);
      }
    }
  }
  return {};
}

}  // namespace

std::vector<BufferId> find_fixed_clash(const BodyModel& model) {
  if (!model.has_fixed) return {};
  std::vector<std::uint32_t> fixed;
  for (std::uint32_t b = 0; b < model.bodies.size(); ++b) {
    const Body& body = model.bodies[b];
    if (body.fixed < 0) continue;
    if (model.slab > 0 && model.lift(b, body.fixed) != body.fixed)
      return {BufferId(model.pieces_of(b).front().buffer)};
    fixed.push_back(b);
  }
  return model.plain ? sweep(model, std::move(fixed)) : ask_pairs(model, fixed);
}

}  // namespace plimsoll::pack
