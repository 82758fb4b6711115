#include "plimsoll/schedule/search/reorder.h"

#include <algorithm>

#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/order.h"

namespace plimsoll::schedule {
namespace {

std::int64_t peak_of(const Problem& problem, const std::vector<Index>& order) {
  const std::vector<std::int64_t> bytes = bytes_over_time(problem, order);
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

class Orders {
 public:
  explicit Orders(const Problem& problem)
      : problem_(problem), best_(given_sequence(problem).order), peak_(peak_of(problem, best_)) {}

  void offer(const std::vector<Index>& order) {
    const std::int64_t peak = peak_of(problem_, order);
    if (peak >= peak_) return;
    peak_ = peak;
    best_ = order;
  }

  void polish(std::vector<Index> order, Random& random) {
    constexpr ReorderOptions kHow;
    const std::int64_t swaps =
        std::min(kHow.most_swaps, kHow.swaps_per_task * problem_.tasks) / kHow.rounds;
    for (int round = 0; round < kHow.rounds; ++round) {
      const std::int64_t budget = peak_of(problem_, order) / 100 * kHow.aim_percent;
      order = lower_order(problem_, std::move(order), budget, swaps, random);
      offer(order);
    }
  }

  const std::vector<Index>& best() const { return best_; }

 private:
  const Problem& problem_;
  std::vector<Index> best_;
  std::int64_t peak_;
};

}  // namespace

std::vector<TaskId> low_order(const Workload& workload, OrderChoice choice, std::uint64_t seed) {
  const Problem problem(workload, Remedies{}, CopyRates{});
  Orders orders(problem);
  if (choice != OrderChoice::kGiven) orders.offer(list_order(problem));
  if (choice == OrderChoice::kSearch) {
    Random random(seed);
    orders.polish(given_sequence(problem).order, random);
    orders.polish(list_order(problem), random);
  }
  std::vector<TaskId> out;
  for (const Index task : orders.best()) out.emplace_back(static_cast<std::size_t>(task));
  return out;
}

Result<Schedule> keep_all_in(const Workload& workload, const std::vector<TaskId>& order) {
  const Problem problem(workload, Remedies{}, CopyRates{});
  std::vector<Index> indices;
  for (const TaskId task : order) indices.push_back(static_cast<Index>(task.index()));
  if (!is_runnable(problem, indices))
    return bad_input("the order breaks a dependency of the graph");
  return link(problem, run_in_order(indices));
}

}  // namespace plimsoll::schedule
