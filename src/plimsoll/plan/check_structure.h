// What must hold of a plan before it can be replayed (check_plan.h): the graph is right, every id
// names something, every buffer lies inside its arena at the alignment, groups lie one behind the
// other, steps have the slots that their nodes have, waits point back, the budget is kept.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

inline constexpr int kFollowedStreams = 8;           // more than that are refused
inline constexpr std::int64_t kLeastAlignment = 64;  // of every buffer and value
inline constexpr std::int64_t kMostAlignment = 1 << 16;
inline constexpr std::size_t kMostProblems = 100;  // that are named

// What is wrong with a plan, in the order in which it was found.
class Problems {
 public:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    if (!full()) list_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  bool none() const { return list_.empty(); }
  bool full() const { return list_.size() >= kMostProblems; }
  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

inline bool is_compute(const PlanStep& step) {
  return step.kind == StepKind::kCompute || step.kind == StepKind::kRecompute;
}

void check_structure(const Plan& plan, Problems& problems);

}  // namespace plimsoll::plan
