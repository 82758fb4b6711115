#include "plimsoll/schedule/search/gap_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace plimsoll::schedule {
namespace {

class GapSearch {
 public:
  GapSearch(const Problem& problem, const Sequence& sequence, EvictorSettings start,
            std::uint64_t seed, const SearchOptions& options, const GapSearchSettings& settings)
      : how_(options.gaps),
        prices_(options.evictor),
        walk_(problem, sequence, seed, options.evictor),
        random_(seed * options.seeds.gap_factor + options.seeds.gap_offset),
        now_(std::move(start)),
        s_(settings) {
    if (now_.gaps.empty()) now_.gaps.resize(walk_.gaps());
    const double share = std::min(1.0, how_.heat_tasks / std::max<double>(1, problem.tasks));
    heat_ = how_.heat * share * problem.total_seconds;
    best_ = now_;
    hopeless_ = now_.give_up_seconds;
  }

  void run() {
    play();
    int leg = 0;
    double done = 0;
    while ((done = s_.progress()) < 1) {
      if (static_cast<int>(done * how_.legs) > leg) {
        ++leg;
        now_ = best_;
        seconds_ = best_seconds_;
      }
      step(heat_ * (1 - done) * (1 - done));
    }
  }

 private:
  // Plays the step as decided; true when the plan is taken.
  bool play(double limit = std::numeric_limits<double>::infinity()) {
    now_.give_up_seconds = std::min(hopeless_, limit);
    if (!walk_.run(now_) || walk_.seconds() > limit) return false;
    seconds_ = walk_.seconds();
    left_ = walk_.left_gaps();
    if (seconds_ < best_seconds_) {
      best_seconds_ = seconds_;
      best_ = now_;
      s_.on_better(walk_);
    }
    return true;
  }

  void step(double temperature) {
    const double alpha = now_.alpha;
    const double copy_weight = now_.copy_weight;
    undo_.clear();
    if (random_.chance(how_.price_chance)) {
      now_.alpha = prices_.alpha_least + prices_.alpha_range * random_.uniform();
      now_.copy_weight = random_.chance(prices_.free_copies_chance) ? 0 : random_.uniform();
    }
    for (int i = 0; i < how_.most_changes && (i == 0 || random_.chance(how_.next_change_chance));
         ++i)
      change_one();
    const double slack = -temperature * std::log(1 - random_.uniform());
    if (play(seconds_ + slack)) return;
    for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) now_.gaps[it->first] = it->second;
    now_.alpha = alpha;
    now_.copy_weight = copy_weight;
  }

  void change_one() {
    const bool emptied = !left_.empty() && random_.chance(how_.emptied_chance);
    const auto gap = emptied ? left_[any_of(left_.size())] : any_of(now_.gaps.size());
    GapChoice& choice = now_.gaps[gap];
    undo_.emplace_back(gap, choice);
    if (random_.chance(how_.lead_chance)) {
      choice.lead =
          static_cast<float>(how_.lead_least * std::exp(how_.log_lead_range * random_.uniform()));
      return;
    }
    constexpr Remedy kRemedies[] = {Remedy::kUndecided, Remedy::kKeep, Remedy::kDrop, Remedy::kSwap,
                                    Remedy::kEncode};
    choice.remedy = kRemedies[any_of(std::size(kRemedies))];
  }

  std::size_t any_of(std::size_t size) {
    return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(size)));
  }

  const GapSearchOptions& how_;
  const EvictorOptions& prices_;
  GreedyEvictor walk_;
  Random random_;
  EvictorSettings now_, best_;
  const GapSearchSettings& s_;
  double heat_ = 0;
  double hopeless_ = 0;
  double seconds_ = std::numeric_limits<double>::infinity();
  double best_seconds_ = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> left_;
  std::vector<std::pair<std::size_t, GapChoice>> undo_;
};

}  // namespace

std::vector<GapChoice> choices_of(const Problem& problem, const Sequence& sequence,
                                  const ActionList& list) {
  std::vector<GapChoice> gaps(sequence.readers.items.size() + at(problem.values));
  std::vector<Remedy> since(at(problem.values),
                            Remedy::kKeep);  // since the last first run to read it
  std::vector<char> made(at(problem.values), 0);
  Index stage = 0;
  for (const ListedAction& action : list.actions) {
    if (action.kind == ActionKind::kCopyIn) since[at(action.id)] = Remedy::kSwap;
    if (action.kind == ActionKind::kDecode) since[at(action.id)] = Remedy::kEncode;
    if (action.kind != ActionKind::kCompute) continue;
    if (stage < problem.tasks && sequence.order[at(stage)] == action.id) {
      for (Index u : problem.inputs[action.id]) {
        const auto readers = sequence.readers[u];
        const auto k = std::lower_bound(readers.begin(), readers.end(), stage) - readers.begin();
        gaps[at(sequence.readers.starts[at(u)]) + at(u) + static_cast<std::size_t>(k)].remedy =
            std::exchange(since[at(u)], Remedy::kKeep);
      }
      ++stage;
    }
    for (Index v : problem.outputs[action.id]) {
      if (made[at(v)]) since[at(v)] = Remedy::kDrop;
      made[at(v)] = 1;
    }
  }
  return gaps;
}

void search_gaps(const Problem& problem, const Sequence& sequence, EvictorSettings start,
                 std::uint64_t seed, const SearchOptions& options,
                 const GapSearchSettings& settings) {
  if (problem.tasks < 2) return;
  GapSearch(problem, sequence, std::move(start), seed, options, settings).run();
}

}  // namespace plimsoll::schedule
