#include "plimsoll/schedule/search/replay.h"

#include <algorithm>
#include <set>

#include "plimsoll/schedule/search/order.h"

namespace plimsoll::schedule {
namespace {

class Replay {
 public:
  Replay(const Problem& problem, std::vector<char> dropped, std::vector<Index> group,
         Index first_backward)
      : p_(problem),
        dropped_(std::move(dropped)),
        group_(std::move(group)),
        first_backward_(first_backward),
        present_(at(problem.values), 0),
        members_(1 + at(*std::max_element(group_.begin(), group_.end()))) {
    for (Index v = 0; v < p_.values; ++v) {
      if (p_.producer[at(v)] == kNoIndex)
        present_[at(v)] = 1;
      else if (dropped_[at(v)] && group_[at(p_.producer[at(v)])] >= 0)
        members_[at(group_[at(p_.producer[at(v)])])].push_back(v);
    }
  }

  ActionList run() {
    for (Index t = 0; t < p_.tasks; ++t) {
      if (t == first_backward_) forget();
      if (t >= first_backward_) {
        for (Index u : p_.inputs[t]) {
          if (!present_[at(u)]) bring_back(u);
        }
      }
      execute(t);
    }
    return std::move(list_);
  }

 private:
  void forget() {
    for (Index v = 0; v < p_.values; ++v) {
      if (dropped_[at(v)] && p_.producer[at(v)] != kNoIndex && p_.producer[at(v)] < first_backward_)
        present_[at(v)] = 0;
    }
  }

  void execute(Index task) {
    list_.actions.push_back({ActionKind::kCompute, task});
    for (Index v : p_.outputs[task]) present_[at(v)] = 1;
  }

  // The whole group of a value: every member that somebody still reads, in the order of the forward
  // half.
  void bring_back(Index value) {
    const Index group = group_[at(p_.producer[at(value)])];
    std::set<Index> tasks;
    std::vector<Index> wanted{value};
    if (group >= 0) {
      for (Index v : members_[at(group)]) {
        const auto readers = p_.readers[v];
        if (!present_[at(v)] && !readers.empty() && readers.back() >= first_backward_)
          wanted.push_back(v);
      }
    }
    while (!wanted.empty()) {
      const Index v = wanted.back();
      wanted.pop_back();
      if (present_[at(v)] || !tasks.insert(p_.producer[at(v)]).second) continue;
      for (Index u : p_.inputs[p_.producer[at(v)]]) {
        if (!present_[at(u)]) wanted.push_back(u);
      }
    }
    for (Index task : tasks) execute(task);
  }

  const Problem& p_;
  std::vector<char> dropped_;
  std::vector<Index> group_;  // per task, -1 for none
  Index first_backward_;
  std::vector<char> present_;
  std::vector<std::vector<Index>> members_;
  ActionList list_;
};

}  // namespace

Index first_backward_task(const Workload& workload, const Problem& problem) {
  if (workload.first_backward.valid())
    return static_cast<Index>(
        std::min<std::size_t>(workload.first_backward.value, workload.tasks.size()));
  const auto bytes = bytes_over_time(problem, given_sequence(problem).order);
  return static_cast<Index>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

ActionList replay(const Problem& problem, std::vector<char> dropped, std::vector<Index> group,
                  Index first_backward) {
  return Replay(problem, std::move(dropped), std::move(group), first_backward).run();
}

bool respects_updates(const Problem& problem, const ActionList& list) {
  if (!problem.has_overwriters) return true;
  std::vector<char> ran(at(problem.tasks), 0);
  for (const ListedAction& step : list.actions) {
    if (step.kind != ActionKind::kCompute) continue;
    for (Index u : problem.inputs[step.id]) {
      const Index last = problem.overwriter[at(u)];
      if (last != kNoIndex && ran[at(last)]) return false;
    }
    ran[at(step.id)] = 1;
  }
  return true;
}

}  // namespace plimsoll::schedule
