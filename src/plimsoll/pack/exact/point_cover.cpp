#include "plimsoll/pack/exact/point_cover.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/exact/best_dives.h"
#include "plimsoll/pack/exact/cover_state.h"
#include "plimsoll/pack/exact/failed_states.h"
#include "plimsoll/pack/heuristics/stable_log.h"

namespace plimsoll::pack {
namespace {

// Run times have a heavy tail: many short dives beat few long ones. A dive that succeeds takes one
// to three nodes per item in tilings, up to twenty where there is slack: short dives may take 2, 4,
// 8 or 16. A tenth of the nodes goes to long dives, each twice as long as the one before, which end
// in a proof where there is nothing to find.
constexpr std::int64_t kShortDive = 2;  // nodes per item
constexpr int kDoublings = 3;
constexpr std::int64_t kFewestNodes = 100;  // of any dive
constexpr std::int64_t kLongDive = 16;      // the first one
constexpr std::int64_t kLongShare = 10;

// What a section is judged by: how many ways there are to go on, then how often it failed before.
constexpr double kBranch = 1000;
constexpr double kWasteBranch = 1500;
constexpr double kExperience = 300;  // per octave of failures
constexpr double kSectionChance = 400;
constexpr std::int64_t kPlainDives = 3;  // the first dives go without chance
constexpr double kGuidedShare = 0.66;    // share of the others that follow an earlier one

// The value of a candidate, in nats of width: chance counts most, so that dives differ; then how
// well it closes with what stands beside it; then how long it lives.
constexpr double kGuide = 100;  // ... and an earlier dive's choice more than all of it
constexpr double kChance = 30;
constexpr double kSnugness = 6;
constexpr double kLevelSide = 2;   // its top is level with what stands beside it
constexpr double kLowSide = 1;     // what stands beside it is higher
constexpr double kHighSide = 0.3;  // it stands out above that

}  // namespace

class PointCover::Search {
 public:
  Search(CoverTask task, const CoverOptions& options)
      : state_(std::move(task)),
        task_(state_.task()),
        options_(options),
        random_(options.seed),
        best_dives_(remembered(task_), task_.sections) {
    weigh_items();
    found_.assign(task_.items.size(), 0);
    failures_.assign(static_cast<std::size_t>(task_.sections), 0);
    bias_.assign(static_cast<std::size_t>(task_.sections), 0);
  }

  CoverResult run(Budget& budget, std::int64_t node_limit) {
    budget_ = &budget;
    const std::int64_t last_node = nodes_ + node_limit;
    CoverResult result = CoverResult::kLimit;
    while (result == CoverResult::kLimit && nodes_ < last_node && !budget.over()) {
      choose_value_order();
      choose_section_bias();
      const std::int64_t limit = next_dive_limit(last_node - nodes_);
      dive_end_ = nodes_ + limit;
      best_dives_.begin(
          options_.guided_dives && dives_ >= kPlainDives && random_.chance(kGuidedShare), random_);
      ++dives_;
      result = state_.start() ? solve_range({0, task_.sections}) : CoverResult::kImpossible;
      best_dives_.end();
    }
    return result;
  }

  void set_limits(std::span<const std::int64_t> ceilings, std::span<const std::int64_t> highest) {
    if (state_.set_limits(ceilings, highest)) failed_.clear();
    best_dives_.clear();
    dives_ = 0;
  }

  std::span<const std::int64_t> places() const { return found_; }
  std::int64_t nodes() const { return nodes_; }

 private:
  using Range = CoverState::Range;

  CoverResult solve_range(Range range) {
    if (!options_.decompose) return solve_whole(range);
    Range first{};
    std::vector<std::pair<std::uint32_t, Range>> parts;
    std::int32_t s = range.begin;
    int count = 0;
    while (s < range.end) {
      if (!state_.open(s)) {
        ++s;
        continue;
      }
      std::int32_t end = s + 1;
      while (end < range.end && state_.crossed(end)) ++end;
      if (++count == 1) {
        first = {s, end};
      } else {
        if (count == 2) parts.emplace_back(state_.items_in(first), first);
        parts.emplace_back(state_.items_in({s, end}), Range{s, end});
      }
      s = end;
    }
    if (count == 0) return CoverResult::kFound;
    if (count == 1) return solve_part(first);
    std::sort(parts.begin(), parts.end());
    for (const auto& [size, part] : parts) {
      const CoverResult result = solve_part(part);
      if (result != CoverResult::kFound) return result;
    }
    return CoverResult::kFound;
  }

  CoverResult solve_whole(Range range) {
    for (auto s = range.begin; s < range.end; ++s) {
      if (state_.open(s)) return solve_part(range);
    }
    return CoverResult::kFound;
  }

  // The section to branch on: inside a valley, with the fewest branches.
  std::int32_t choose_section(Range range) const {
    std::int32_t best = -1;
    double best_key = 0;
    for (auto x = range.begin; x < range.end;) {
      const std::int64_t height = state_.floor(x);
      auto y = x + 1;
      if (!state_.open(x)) {
        x = y;
        continue;
      }
      while (y < range.end && state_.open(y) && state_.floor(y) == height) ++y;
      const bool left = x == range.begin || !state_.open(x - 1) || state_.floor(x - 1) > height;
      const bool right = y == range.end || !state_.open(y) || state_.floor(y) > height;
      for (auto s = x; left && right && s < y; ++s) {
        const double key = branching_key(s);
        if (best < 0 || key < best_key) best = s, best_key = key;
      }
      x = y;
    }
    return best;
  }

  double branching_key(std::int32_t s) const {
    const auto at = static_cast<std::size_t>(s);
    const auto ceiling = static_cast<double>(task_.ceilings[at]);
    const std::int64_t slack = state_.slack(s);
    const double branches = static_cast<double>(state_.on_floor(s)) * kBranch +
                            (slack > 0 ? kWasteBranch : 0) +
                            static_cast<double>(slack) / ceiling * 100;
    if (options_.fail_first) return branches + bias_[at];
    return static_cast<double>(state_.floor(s)) / ceiling * 1e9 + branches;
  }

  CoverResult solve_part(Range range) {
    const std::int64_t work = state_.take_work() + range.end - range.begin + 20;
    if (++nodes_ > dive_end_ || !budget_->spend(work)) return CoverResult::kLimit;
    const StateKey key = state_.key_of(range);
    if (options_.memo && known_to_fail(key)) return CoverResult::kImpossible;
    const std::int32_t s = choose_section(range);
    const CoverResult result = branch(range, s);
    if (result == CoverResult::kImpossible && options_.memo) failed_.insert(key, blamed_.hull());
    return result;
  }

  bool known_to_fail(StateKey key) {
    const SectionSet::Hull* hull = failed_.find(key);
    if (!hull) return false;
    blamed_ = {};
    blamed_.add(*hull);
    return true;
  }

  // Tries whatever can cover the point above the floor of s. After a failure blamed_ says which
  // sections it follows from; a step that touched none of them is not to blame, and neither is this
  // node.
  CoverResult branch(Range range, std::int32_t s) {
    const std::int64_t height = state_.floor(s);
    SectionSet blamed;
    state_.explain(s, blamed);
    for (const std::uint32_t i : candidates(s)) {
      const std::size_t mark = state_.mark();
      const bool possible = state_.place(i, height);
      best_dives_.place(i, height);
      const CoverResult result = follow(possible, range, mark);
      best_dives_.take_back(i);
      if (result == CoverResult::kFound) found_[i] = height;
      if (result != CoverResult::kImpossible || innocent_) return result;
      blamed.add(blamed_);
    }
    const CoverResult result = waste(range, s, blamed);
    if (result != CoverResult::kImpossible || innocent_) return result;
    blamed_.add(blamed);
    return result;
  }

  // Solves what is left after a step and takes the step back. blamed_: what the failure follows
  // from; innocent_: it would have failed without the step.
  CoverResult follow(bool possible, Range range, std::size_t mark) {
    const CoverState::Trace trace = state_.trace();
    CoverResult result = CoverResult::kImpossible;
    innocent_ = false;
    if (possible) {
      result = solve_range(range);
      const bool derived = trace.derived.meets(blamed_);
      innocent_ = options_.backjump && result == CoverResult::kImpossible && !derived &&
                  !trace.direct.meets(blamed_);
      if (derived) blamed_.add(trace.because);
    } else {
      blamed_ = trace.because;
      failures_[static_cast<std::size_t>(state_.failed_section())] += 1;
    }
    state_.undo_to(mark);
    return result;
  }

  // Items that can lie right on the floor of s, best first, one of each kind.
  std::vector<std::uint32_t> candidates(std::int32_t s) const {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t i : state_.members(s)) {
      if (!state_.placed(i) && state_.lowest(i) == state_.floor(s)) out.push_back(i);
    }
    rank(out);
    const auto twin = [&](std::uint32_t a, std::uint32_t b) {
      const CoverItem& x = task_.items[a];
      const CoverItem& y = task_.items[b];
      return x.first == y.first && x.last == y.last && x.size == y.size && x.fixed < 0 &&
             y.fixed < 0 && x.highest == y.highest &&
             task_.model->bodies[x.body].modulus == task_.model->bodies[y.body].modulus &&
             task_.model->bodies[x.body].residue == task_.model->bodies[y.body].residue;
    };
    std::size_t kept = 0;
    for (std::size_t k = 0; k < out.size(); ++k) {
      bool repeated = false;
      for (std::size_t j = 0; j < kept && !repeated; ++j) repeated = twin(out[j], out[k]);
      if (!repeated) out[kept++] = out[k];
    }
    out.resize(kept);
    return out;
  }

  void rank(std::vector<std::uint32_t>& items) const {
    if (items.size() < 2) return;
    ranked_.clear();
    for (const std::uint32_t i : items) {
      const double guide = best_dives_.advise(i, state_.lowest(i)) ? kGuide : 0;
      ranked_.emplace_back(-guide - value_[i] - (options_.snug_cover ? kSnugness * snugness(i) : 0),
                           i);
    }
    std::sort(ranked_.begin(), ranked_.end());
    for (std::size_t k = 0; k < items.size(); ++k) items[k] = ranked_[k].second;
  }

  // How well an item on the floor closes with its neighbours in time.
  double snugness(std::uint32_t i) const {
    const CoverItem& item = task_.items[i];
    const std::int64_t bottom = state_.lowest(i);
    const std::int64_t top = bottom + item.size;
    const auto side = [&](std::int64_t beside) {
      if (beside == top) return kLevelSide;
      if (beside > top) return kLowSide;
      return beside > bottom ? kHighSide : 0.0;
    };
    return side(item.first == 0 ? task_.ceilings.front() : state_.floor(item.first - 1)) +
           side(item.last == task_.sections ? task_.ceilings.back() : state_.floor(item.last));
  }

  // Nothing lies right on the floor of s: raise it to the next height any of its items could have.
  CoverResult waste(Range range, std::int32_t s, SectionSet& blamed) {
    blamed_ = {};
    innocent_ = false;
    const std::int64_t slack = state_.slack(s);
    if (slack <= 0) return CoverResult::kImpossible;
    const std::int64_t next = state_.next_height(range, s, blamed);
    if (next - state_.floor(s) > slack) return CoverResult::kImpossible;
    const std::size_t mark = state_.mark();
    const bool possible = state_.raise_floor(s, next);
    return follow(possible, range, mark);
  }

  static std::vector<BestDives::Item> remembered(const CoverTask& task) {
    std::vector<BestDives::Item> items;
    for (const CoverItem& item : task.items)
      items.push_back({{item.first, item.last}, item.duration * static_cast<double>(item.size)});
    return items;
  }

  void weigh_items() {
    std::vector<std::int64_t> load(static_cast<std::size_t>(task_.sections), 0);
    for (const CoverItem& item : task_.items) {
      for (auto s = item.first; s < item.last; ++s) load[static_cast<std::size_t>(s)] += item.size;
    }
    for (const CoverItem& item : task_.items) {
      std::int64_t most = 1;
      for (auto s = item.first; s < item.last; ++s)
        most = std::max(most, load[static_cast<std::size_t>(s)]);
      weights_.push_back({std::log(item.duration), std::log(static_cast<double>(item.size)),
                          std::log(static_cast<double>(most))});
    }
  }

  // Every second short dive may be twice as long, of those every second twice as long again.
  // A long one must fit into what is left of the run; a short one may end after it.
  std::int64_t next_dive_limit(std::int64_t left) {
    const auto items = static_cast<std::int64_t>(task_.items.size());
    const std::int64_t next_long = items * kLongDive << long_dives_;
    if (next_long <= left && kLongShare * (long_nodes_ + next_long) <= nodes_) {
      long_nodes_ += next_long;
      ++long_dives_;
      return next_long;
    }
    const int doublings =
        std::min(std::countr_zero(static_cast<std::uint64_t>(dives_) + 1), kDoublings);
    return std::max(kFewestNodes, items * kShortDive << doublings);
  }

  // Longest first, largest area first, most contended first; then chance.
  void choose_value_order() {
    value_.resize(task_.items.size());
    for (std::size_t i = 0; i < value_.size(); ++i) {
      const auto& [width, size, contention] = weights_[i];
      switch (dives_) {
        case 0:
          value_[i] = 1000 * width + size;
          break;
        case 1:
          value_[i] = 1000 * (width + size) + width;
          break;
        case 2:
          value_[i] = 1e5 * contention + 10 * width + size;
          break;
        default:
          value_[i] = width + kChance * random_.uniform();
      }
      const std::int64_t hint = task_.items[i].hint;
      if (hint >= 0 && dives_ == 0) value_[i] = 1e12 - static_cast<double>(hint);
    }
  }

  // Where dives have failed, branch early; and a little by chance, so that dives differ in this,
  // too.
  void choose_section_bias() {
    if (dives_ < kPlainDives) return;
    for (std::size_t s = 0; s < bias_.size(); ++s)
      bias_[s] = kSectionChance * random_.uniform() - kExperience * stable_log2(1 + failures_[s]);
  }

  CoverState state_;
  const CoverTask& task_;
  CoverOptions options_;
  Random random_;
  Budget* budget_ = nullptr;
  struct Weights {
    double width, size, contention;  // logarithms
  };
  BestDives best_dives_;
  std::vector<Weights> weights_;
  std::vector<double> value_;
  mutable std::vector<std::pair<double, std::uint32_t>> ranked_;
  SectionSet blamed_;  // what the last failure follows from
  bool innocent_ = false;
  std::vector<std::int64_t> found_;
  FailedStates failed_;
  std::int64_t nodes_ = 0;
  std::int64_t dive_end_ = 0;
  std::int64_t dives_ = 0;
  std::int64_t long_dives_ = 0;
  std::int64_t long_nodes_ = 0;
  std::vector<double> failures_;  // per section
  std::vector<double> bias_;
};

PointCover::PointCover(CoverTask task, const CoverOptions& options)
    : search_(std::make_unique<Search>(std::move(task), options)) {}
PointCover::~PointCover() = default;
PointCover::PointCover(PointCover&&) noexcept = default;

CoverResult PointCover::run(Budget& budget, std::int64_t node_limit) {
  return search_->run(budget, node_limit);
}
void PointCover::set_limits(std::span<const std::int64_t> ceilings,
                            std::span<const std::int64_t> highest) {
  search_->set_limits(ceilings, highest);
}
std::span<const std::int64_t> PointCover::places() const {
  return search_->places();
}
std::int64_t PointCover::nodes() const {
  return search_->nodes();
}

}  // namespace plimsoll::pack
