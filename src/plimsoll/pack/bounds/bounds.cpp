#include "plimsoll/pack/bounds/bounds.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/pack/bounds/antichain.h"
#include "plimsoll/pack/model/sections.h"

namespace plimsoll::pack {
namespace {

Bound own_top_bound(const BodyModel& model) {
  Bound bound;
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    const std::int64_t place =
        model.bodies[b].fixed >= 0 ? model.bodies[b].fixed : model.lift(b, 0);
    const std::int64_t top = place > kLargest / model.unit ? kNever : model.top_bytes(b, place);
    if (top <= bound.bytes) continue;
    bound.bytes = top;
    bound.witnesses.clear();
    for (const Piece& piece : model.pieces_of(b)) bound.witnesses.push_back(BufferId(piece.buffer));
  }
  return bound;
}

// Bytes that are alive for a while.
struct Live {
  Interval<std::int32_t> span;
  std::int64_t size;
  std::int64_t overhang;  // what the last unit leaves unused
  std::uint32_t buffer;
};

// Peak of weighted intervals; each(visit) calls visit(live) for all of them.
template <class Each>
Bound peak(const Each& each, std::int32_t sections, std::int64_t unit) {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(sections) + 1, 0);
  each([&](const Live& live) {
    sums[static_cast<std::size_t>(live.span.begin)] += live.size;
    sums[static_cast<std::size_t>(live.span.end)] -= live.size;
  });
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  const auto top = std::max_element(sums.begin(), sums.end());
  const auto section = static_cast<std::int32_t>(top - sums.begin());
  Bound bound;
  std::int64_t overhang = 0;
  each([&](const Live& live) {
    if (!live.span.contains(section)) return;
    bound.witnesses.push_back(BufferId(live.buffer));
    overhang = std::max(overhang, live.overhang);
  });
  bound.bytes = *top * unit - overhang;
  return bound;
}

Bound section_bound(const BodyModel& model) {
  const auto each = [&](const auto& visit) {
    for (const Body& body : model.bodies) {
      for (std::uint32_t k = body.piece_begin; k < body.piece_end; ++k) {
        const Piece& piece = model.pieces[k];
        visit(Live{{piece.first, piece.last}, piece.hi - piece.lo, body.overhang, piece.buffer});
      }
    }
  };
  return peak(each, model.sections, model.unit);
}

Bound clock_bound(const BodyModel& model) {
  const Problem& problem = *model.problem;
  const auto streams = static_cast<std::size_t>(problem.clocks.streams);
  std::vector<char> counted(problem.size(), 0);
  for (const Piece& piece : model.pieces) counted[piece.buffer] = 1;
  for (const auto& members : problem.colocated) {  // one of a class, so that no byte counts twice
    BufferId largest;
    for (const BufferId id : members) {
      if (counted[id.index()] && (!largest.valid() || problem.buffers[largest.index()].size <
                                                          problem.buffers[id.index()].size))
        largest = id;
    }
    for (const BufferId id : members) counted[id.index()] = counted[id.index()] && id == largest;
  }
  if (std::optional<Antichain> exact = heaviest_antichain(problem, counted)) {
    return {exact->bytes, std::move(exact->members)};
  }
  Bound best;
  for (std::size_t s = 0; s < streams; ++s) {
    std::vector<Interval<std::int64_t>> times;
    std::vector<Live> lives;
    for (std::uint32_t i = 0; i < problem.size(); ++i) {
      const std::size_t at = i * streams + s;
      const Interval<std::int64_t> time{problem.clocks.ready[at], problem.clocks.released[at]};
      if (!counted[i] || time.empty()) continue;
      times.push_back(time);
      lives.push_back({{}, problem.buffers[i].size.value, 0, i});
    }
    const Sections sections = cut_sections(times);
    for (std::size_t k = 0; k < lives.size(); ++k) lives[k].span = sections.spans[k];
    if (lives.empty()) continue;
    const auto each = [&](const auto& visit) { std::for_each(lives.begin(), lives.end(), visit); };
    Bound bound = peak(each, sections.count, 1);
    if (bound.bytes > best.bytes) best = std::move(bound);
  }
  return best;
}

}  // namespace

Bound lower_bound(const BodyModel& model) {
  if (model.bodies.empty()) return {};
  Bound own = own_top_bound(model);
  Bound peak_live = model.problem->clocks.streams > 0 ? clock_bound(model) : section_bound(model);
  return peak_live.bytes >= own.bytes ? peak_live : own;
}

}  // namespace plimsoll::pack
