#include "plimsoll/pack/model/make_bodies.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "plimsoll/base/check.h"
#include "plimsoll/base/checked.h"
#include "plimsoll/pack/model/fixed_clash.h"
#include "plimsoll/pack/model/rigid.h"
#include "plimsoll/pack/model/sections.h"

namespace plimsoll::pack {
namespace {

// A piece in the caller's own time and bytes, before sections and units exist.
struct RawPiece {
  std::uint32_t body = 0;
  std::uint32_t buffer = 0;
  Interval<std::int64_t> time;
  std::int64_t lo = 0;
  std::int64_t hi = 0;
};

class Builder {
 public:
  Builder(const Problem& problem, std::size_t memory, std::span<const std::uint8_t> assignment)
      : problem_(problem), memory_(memory), assignment_(assignment) {
    model_.problem = &problem;
  }

  BodyModel build() {
    model_.body_of.assign(problem_.size(), BodyModel::kNoBody);
    model_.here.resize(problem_.size());
    for (std::size_t i = 0; i < problem_.size(); ++i) model_.here[i] = here(i);
    if (!problem_.contiguous.empty() || !problem_.colocated.empty()) {
      model_.delta_of.assign(problem_.size(), 0);
      if (!bind_rigid_bodies()) return std::move(model_);
    }
    add_single_bodies();
    if (problem_.clocks.streams > 0) {
      add_clock_pieces();
    } else {
      add_presence_pieces();
    }
    merge_colocated_pieces();
    drop_idle_bodies();
    choose_unit();
    cut_sections();
    describe_bodies();
    find_inner_clash();
    if (model_.contradiction.empty()) model_.contradiction = find_fixed_clash(model_);
    return std::move(model_);
  }

 private:
  bool here(std::size_t buffer) const {
    return assignment_.empty() || assignment_[buffer] == memory_;
  }

  bool bind_rigid_bodies() {
    RigidBodies rigid = bind_rigid(problem_);
    if (!rigid.contradiction.empty()) {
      model_.contradiction = std::move(rigid.contradiction);
      return false;
    }
    std::vector<std::uint32_t> renumbered(rigid.frames.size(), BodyModel::kNoBody);
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      if (rigid.frame_of[i] == BodyModel::kNoBody || !here(i)) continue;
      std::uint32_t& body = renumbered[rigid.frame_of[i]];
      if (body == BodyModel::kNoBody) {
        const Frame& frame = rigid.frames[rigid.frame_of[i]];
        body = static_cast<std::uint32_t>(model_.bodies.size());
        Body made;
        made.modulus = frame.modulus;
        made.residue = frame.residue;
        made.fixed = frame.fixed;
        made.hint = frame.hint;
        model_.bodies.push_back(made);
      }
      model_.body_of[i] = body;
      model_.delta_of[i] = rigid.delta_of[i];
    }
    return true;
  }

  void add_single_bodies() {
    model_.bodies.reserve(problem_.size());
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      if (!here(i) || model_.body_of[i] != BodyModel::kNoBody) continue;
      if (buffer.fixed && buffer.fixed->value % buffer.alignment != 0)
        model_.contradiction = {BufferId(i)};
      if (buffer.size.value == 0 || !ever_alive(problem_, BufferId(i))) continue;
      model_.body_of[i] = static_cast<std::uint32_t>(model_.bodies.size());
      Body made;
      made.modulus = buffer.alignment;
      if (buffer.fixed) made.fixed = buffer.fixed->value;
      if (buffer.hint) made.hint = buffer.hint->value;
      model_.bodies.push_back(made);
    }
  }

  void add_piece(std::size_t buffer, Interval<std::int64_t> time, Interval<std::int64_t> window) {
    if (time.empty() || window.empty()) return;
    const std::int64_t delta = model_.delta_of.empty() ? 0 : model_.delta_of[buffer];
    raw_.push_back({model_.body_of[buffer], static_cast<std::uint32_t>(buffer), time,
                    delta + window.begin, delta + window.end});
  }

  void add_presence_pieces() {
    raw_.reserve(model_.bodies.size() + 2 * problem_.gaps.size());
    std::size_t gap = 0;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      const Buffer& buffer = problem_.buffers[i];
      const bool placed = model_.body_of[i] != BodyModel::kNoBody;
      std::int64_t from = buffer.lifetime.begin;
      for (; gap < problem_.gaps.size() && problem_.gaps[gap].buffer.index() == i; ++gap) {
        const Gap& away = problem_.gaps[gap];
        if (placed) {
          add_piece(i, {from, away.time.begin}, {0, buffer.size.value});
          add_piece(i, away.time, away.window);
        }
        from = away.time.end;
      }
      if (placed) add_piece(i, {from, buffer.lifetime.end}, {0, buffer.size.value});
    }
  }

  void add_clock_pieces() {
    const std::vector<Interval<std::int64_t>> times = conservative_lifetimes(problem_.clocks);
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      if (model_.body_of[i] == BodyModel::kNoBody) continue;
      if (ever_alive(problem_, BufferId(i)))
        add_piece(i, times[i], {0, problem_.buffers[i].size.value});
    }
  }

  // Members of a class may be alive together; the outside sees one outline. Per stretch of time
  // that is the hull of those alive, which is exact but for windows with a hole between them.
  void merge_colocated_pieces() {
    if (problem_.colocated.empty() || problem_.clocks.streams > 0) return;
    std::vector<std::int32_t> class_of(problem_.size(), -1);
    for (std::size_t k = 0; k < problem_.colocated.size(); ++k) {
      for (const BufferId id : problem_.colocated[k])
        class_of[id.index()] = static_cast<std::int32_t>(k);
    }
    std::vector<std::vector<RawPiece>> outlines(problem_.colocated.size());
    std::erase_if(raw_, [&](const RawPiece& piece) {
      const std::int32_t k = class_of[piece.buffer];
      if (k >= 0) outlines[static_cast<std::size_t>(k)].push_back(piece);
      return k >= 0;
    });
    for (const auto& outline : outlines) append_outline(outline);
  }

  void append_outline(const std::vector<RawPiece>& members) {
    std::vector<std::pair<std::int64_t, std::int64_t>> events;  // time, +-(index + 1)
    for (std::size_t k = 0; k < members.size(); ++k) {
      const auto tag = static_cast<std::int64_t>(k) + 1;
      events.emplace_back(members[k].time.begin, tag);
      events.emplace_back(members[k].time.end, -tag);
    }
    std::sort(events.begin(), events.end());
    std::multiset<std::int64_t> lows;
    std::multiset<std::int64_t> highs;
    for (std::size_t e = 0; e < events.size(); ++e) {
      const std::int64_t tag = events[e].second;
      const RawPiece& member = members[static_cast<std::size_t>(std::abs(tag) - 1)];
      if (tag > 0) {
        lows.insert(member.lo);
        highs.insert(member.hi);
      } else {
        lows.erase(lows.find(member.lo));
        highs.erase(highs.find(member.hi));
      }
      if (highs.empty() || events[e].first == events[e + 1].first) continue;
      RawPiece stretch = member;
      stretch.time = {events[e].first, events[e + 1].first};
      stretch.lo = *lows.begin();
      stretch.hi = *highs.rbegin();
      raw_.push_back(stretch);
    }
  }

  // A group whose members all have size 0 has no piece and needs no room; it only needs a place.
  void drop_idle_bodies() {
    const auto by_body = [](const RawPiece& a, const RawPiece& b) { return a.body < b.body; };
    if (!std::is_sorted(raw_.begin(), raw_.end(), by_body))
      std::stable_sort(raw_.begin(), raw_.end(), by_body);
    std::vector<std::uint32_t> renumbered(model_.bodies.size(), BodyModel::kNoBody);
    std::vector<Body> kept;
    kept.reserve(model_.bodies.size());
    for (RawPiece& piece : raw_) {
      std::uint32_t& body = renumbered[piece.body];
      if (body == BodyModel::kNoBody) {
        body = static_cast<std::uint32_t>(kept.size());
        kept.push_back(model_.bodies[piece.body]);
        kept.back().piece_begin = static_cast<std::uint32_t>(&piece - raw_.data());
      }
      piece.body = body;
      kept[body].piece_end = static_cast<std::uint32_t>(&piece - raw_.data()) + 1;
    }
    if (kept.size() == model_.bodies.size()) {
      model_.bodies = std::move(kept);
      return;
    }
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      std::uint32_t& body = model_.body_of[i];
      if (body == BodyModel::kNoBody) continue;
      const Body& old = model_.bodies[body];
      body = renumbered[body];
      if (body == BodyModel::kNoBody && !model_.delta_of.empty())
        model_.delta_of[i] += old.fixed >= 0 ? old.fixed : old.residue;
    }
    model_.bodies = std::move(kept);
  }

  bool all_single_from_zero() const {
    for (const Body& body : model_.bodies) {
      if (body.piece_end - body.piece_begin != 1 || raw_[body.piece_begin].lo != 0) return false;
    }
    return true;
  }

  void choose_unit() {
    const bool single = all_single_from_zero();
    model_.plain = single && problem_.clocks.streams == 0 && problem_.ends.empty();
    const auto& slab = problem_.memories[memory_].slab;
    std::int64_t common = slab ? slab->value : 0;  // divides every offset in any solution
    std::int64_t alignment = 0;
    for (const Body& body : model_.bodies) {
      alignment = std::gcd(alignment, body.modulus);
      if (body.fixed > 0) common = std::gcd(common, body.fixed);
      common = std::gcd(common, body.residue);
    }
    std::int64_t round = single && !slab ? std::gcd(alignment, common) : 1;
    if (round == 0) round = 1;
    for (RawPiece& piece : raw_) {
      const std::int64_t rounded = round_up(piece.hi, round);
      if (single) model_.bodies[piece.body].overhang = rounded - piece.hi;
      piece.hi = rounded;
      common = std::gcd(common, std::gcd(piece.lo, piece.hi));
    }
    if (slab) {
      for (const RawPiece& piece : raw_) {
        std::int64_t& extent = model_.bodies[piece.body].extent;
        extent = std::max(extent, end_of(piece.buffer));
        common = std::gcd(common, end_of(piece.buffer));
      }
    }
    model_.unit = unit_for_moduli(std::max<std::int64_t>(common, 1));
    model_.slab = slab ? slab->value / model_.unit : 0;
    for (Body& body : model_.bodies) {
      if (body.fixed >= 0) body.fixed /= model_.unit, model_.has_fixed = true;
      if (body.hint >= 0) body.hint /= model_.unit;
      body.extent /= model_.unit;
      body.residue /= model_.unit;
      body.modulus = std::max<std::int64_t>(1, body.modulus / model_.unit);
    }
  }

  // The end of a buffer relative to its body, windows or not.
  std::int64_t end_of(std::size_t buffer) const {
    return (model_.delta_of.empty() ? 0 : model_.delta_of[buffer]) +
           problem_.buffers[buffer].size.value;
  }

  // A modulus must divide the unit (then it holds by itself) or be a multiple of it.
  std::int64_t unit_for_moduli(std::int64_t unit) const {
    for (bool stable = false; !stable;) {
      stable = true;
      for (const Body& body : model_.bodies) {
        if (unit % body.modulus == 0 || body.modulus % unit == 0) continue;
        unit = std::gcd(unit, body.modulus);
        stable = false;
      }
    }
    return unit;
  }

  void cut_sections() {
    std::vector<Interval<std::int64_t>> times(raw_.size());
    for (std::size_t k = 0; k < raw_.size(); ++k) times[k] = raw_[k].time;
    model_.pieces.resize(raw_.size());
    const Sections sections = pack::cut_sections(times);
    model_.sections = sections.count;
    for (std::size_t k = 0; k < raw_.size(); ++k) {
      model_.pieces[k] = {sections.spans[k].begin, sections.spans[k].end, raw_[k].lo / model_.unit,
                          raw_[k].hi / model_.unit, raw_[k].buffer};
    }
  }

  void describe_bodies() {
    for (std::size_t b = 0; b < model_.bodies.size(); ++b) {
      Body& body = model_.bodies[b];
      body.first = model_.sections;
      for (std::uint32_t k = body.piece_begin; k < body.piece_end; ++k) {
        const Piece& piece = model_.pieces[k];
        body.first = std::min(body.first, piece.first);
        body.last = std::max(body.last, piece.last);
        body.height = std::max(body.height, piece.hi);
        const Interval<std::int64_t>& time = raw_[k].time;
        body.duration = std::max(body.duration,
                                 static_cast<double>(time.end) - static_cast<double>(time.begin));
        if (!problem_.ends.empty()) body.end = problem_.ends[piece.buffer];
      }
    }
  }

  // Members of one body that are alive together must not overlap: place the body at 0 and sweep.
  void find_inner_clash() {
    if (problem_.contiguous.empty() && problem_.colocated.empty()) return;
    for (std::size_t b = 0; b < model_.bodies.size(); ++b) {
      const auto pieces = model_.pieces_of(b);
      if (pieces.size() < 2 || !model_.contradiction.empty()) continue;
      if (auto clash = clash_inside(pieces)) {
        model_.contradiction = {BufferId(clash->first), BufferId(clash->second)};
      }
    }
  }

  std::optional<std::pair<std::uint32_t, std::uint32_t>> clash_inside(
      std::span<const Piece> pieces) const {
    std::vector<std::uint32_t> order(pieces.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [&](auto a, auto b) { return pieces[a].first < pieces[b].first; });
    std::multimap<std::int32_t, std::map<std::int64_t, std::uint32_t>::iterator> leaving;
    std::map<std::int64_t, std::uint32_t> alive;
    for (const std::uint32_t k : order) {
      const Piece& piece = pieces[k];
      while (!leaving.empty() && leaving.begin()->first <= piece.first) {
        alive.erase(leaving.begin()->second);
        leaving.erase(leaving.begin());
      }
      const auto above = alive.lower_bound(piece.lo);
      if (above != alive.end() && above->first < piece.hi &&
          may_clash(piece, pieces[above->second]))
        return std::pair(piece.buffer, pieces[above->second].buffer);
      if (above != alive.begin()) {
        const Piece& below = pieces[std::prev(above)->second];
        if (below.hi > piece.lo && may_clash(piece, below))
          return std::pair(piece.buffer, below.buffer);
      }
      const auto [where, fresh] = alive.emplace(piece.lo, k);
      if (fresh) leaving.emplace(piece.last, where);
    }
    return std::nullopt;
  }

  bool may_clash(const Piece& a, const Piece& b) const {
    if (problem_.clocks.streams == 0) return true;
    for (const auto& group : problem_.colocated) {
      const auto in = [&](std::uint32_t buffer) {
        return std::find(group.begin(), group.end(), BufferId(buffer)) != group.end();
      };
      if (in(a.buffer) && in(b.buffer)) return false;
    }
    return meet(problem_, BufferId(a.buffer), BufferId(b.buffer));
  }

  const Problem& problem_;
  const std::size_t memory_;
  const std::span<const std::uint8_t> assignment_;
  BodyModel model_;
  std::vector<RawPiece> raw_;
};

}  // namespace

BodyModel make_bodies(const Problem& problem, std::size_t memory,
                      std::span<const std::uint8_t> assignment) {
  return Builder(problem, memory, assignment).build();
}

}  // namespace plimsoll::pack
