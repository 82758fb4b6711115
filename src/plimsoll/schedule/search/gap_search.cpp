#include "plimsoll/schedule/search/gap_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace plimsoll::schedule {
namespace {

constexpr double kHeat = 0.01;  // starting temperature, as a fraction of the step's time
constexpr double kGapHeatTasks = 60;
constexpr int kLegs = 8;  // each leg of the way starts from the best so far

class GapSearch {
 public:
  GapSearch(const Problem& problem, const Sequence& sequence, ConstructSettings start,
            std::uint64_t seed, const GapSearchSettings& settings)
      : p_(problem),
        walk_(problem, sequence, seed),
        random_(seed * 31 + 7),
        now_(std::move(start)),
        s_(settings) {
    if (now_.gaps.empty()) now_.gaps.resize(walk_.gaps());
    const double share = std::min(1.0, kGapHeatTasks / std::max<double>(1, problem.tasks));
    heat_ = kHeat * share * problem.total_seconds;
    best_ = now_;
    hopeless_ = now_.give_up_seconds;
  }

  void run() {
    play();
    int leg = 0;
    double done = 0;
    while ((done = s_.progress()) < 1) {
      if (static_cast<int>(done * kLegs) > leg) {
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
    if (random_.chance(0.05)) {
      now_.alpha = 0.3 + 1.5 * random_.uniform();
      now_.copy_weight = random_.chance(0.3) ? 0 : random_.uniform();
    }
    for (int i = 0; i < 4 && (i == 0 || random_.chance(0.4)); ++i) change_one();
    const double slack = -temperature * std::log(1 - random_.uniform());
    if (play(seconds_ + slack)) return;
    for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) now_.gaps[it->first] = it->second;
    now_.alpha = alpha;
    now_.copy_weight = copy_weight;
  }

  void change_one() {
    const bool known = !left_.empty() && random_.chance(0.6);
    const auto gap = known ? left_[any_of(left_.size())] : any_of(now_.gaps.size());
    GapChoice& choice = now_.gaps[gap];
    undo_.emplace_back(gap, choice);
    if (random_.chance(0.15)) {
      choice.lead = static_cast<float>(0.5 * std::exp(2.5 * random_.uniform()));
      return;
    }
    constexpr GapMode kModes[] = {GapMode::kFree, GapMode::kStay, GapMode::kDrop, GapMode::kSwap,
                                  GapMode::kEncode};
    choice.mode = kModes[any_of(std::size(kModes))];
  }

  std::size_t any_of(std::size_t size) {
    return static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(size)));
  }

  const Problem& p_;
  Construct walk_;
  Random random_;
  ConstructSettings now_, best_;
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
                                  const Script& script) {
  std::vector<GapChoice> gaps(sequence.readers.items.size() + at(problem.values));
  std::vector<GapMode> since(at(problem.values),
                             GapMode::kStay);  // since the last first run to read it
  std::vector<char> made(at(problem.values), 0);
  Index stage = 0;
  for (const ScriptStep& step : script.steps) {
    if (step.kind == ScriptStep::Kind::kBringIn) since[at(step.id)] = GapMode::kSwap;
    if (step.kind == ScriptStep::Kind::kDecode) since[at(step.id)] = GapMode::kEncode;
    if (step.kind != ScriptStep::Kind::kRun) continue;
    if (stage < problem.tasks && sequence.order[at(stage)] == step.id) {
      for (Index u : problem.inputs[step.id]) {
        const auto readers = sequence.readers[u];
        const auto k = std::lower_bound(readers.begin(), readers.end(), stage) - readers.begin();
        gaps[at(sequence.readers.starts[at(u)]) + at(u) + static_cast<std::size_t>(k)].mode =
            std::exchange(since[at(u)], GapMode::kStay);
      }
      ++stage;
    }
    for (Index v : problem.outputs[step.id]) {
      if (made[at(v)]) since[at(v)] = GapMode::kDrop;
      made[at(v)] = 1;
    }
  }
  return gaps;
}

void search_gaps(const Problem& problem, const Sequence& sequence, ConstructSettings start,
                 std::uint64_t seed, const GapSearchSettings& settings) {
  if (problem.tasks < 2) return;
  GapSearch(problem, sequence, std::move(start), seed, settings).run();
}

}  // namespace plimsoll::schedule
