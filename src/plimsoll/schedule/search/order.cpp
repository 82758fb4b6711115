#include "plimsoll/schedule/search/order.h"

#include <algorithm>
#include <limits>
#include <set>

namespace plimsoll::schedule {
namespace {

std::int64_t made_by(const Problem& p, Index task) {
  std::int64_t bytes = 0;
  for (Index v : p.outputs[task]) bytes += p.bytes[at(v)];
  return bytes;
}

bool reads(const Problem& p, Index task, Index value) {
  const auto inputs = p.inputs[task];
  return std::find(inputs.begin(), inputs.end(), value) != inputs.end();
}

// Two neighbours, what the places hold, and what they would hold after a swap.
class Mover {
 public:
  Mover(const Problem& problem, std::vector<Index> order, std::int64_t budget,
        const OrderSearchOptions& options)
      : p_(problem),
        over_budget_weight_(options.over_budget_weight),
        order_(std::move(order)),
        budget_(budget),
        last_(at(problem.values), kNoIndex) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      for (Index u : p_.inputs[order_[i]]) last_[at(u)] = static_cast<Index>(i);
    }
    held_.assign(order_.size() + 1, 0);
    for (Index v = 0; v < p_.values; ++v) {
      if (p_.producer[at(v)] == kNoIndex) held_[0] += p_.bytes[at(v)];
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
      held_[i + 1] = held_[i] + made_by(p_, order_[i]) - freed(order_[i], static_cast<Index>(i));
    }
    scale_ = static_cast<double>(
        std::max<std::int64_t>(1, *std::max_element(held_.begin(), held_.end())));
  }

  // What running the task at position `at_position` frees, given where values are last read.
  std::int64_t freed(Index task, Index at_position) const {
    std::int64_t bytes = 0;
    for (Index u : p_.inputs[task]) {
      if (last_[at(u)] == at_position && !p_.keep[at(u)]) bytes += p_.bytes[at(u)];
    }
    for (Index v : p_.outputs[task]) {
      if (last_[at(v)] == kNoIndex && !p_.keep[at(v)]) bytes += p_.bytes[at(v)];
    }
    return bytes;
  }

  // During the run: in-place outputs lie in an input that ends here.
  std::int64_t during(Index task, Index position, std::int64_t held) const {
    std::int64_t bytes = held + made_by(p_, task) + p_.scratch[at(task)];
    for (Index v : p_.outputs[task]) {
      const Index from = p_.in_place[at(v)];
      if (from != kNoIndex && last_[at(from)] == position && !p_.keep[at(from)])
        bytes -= p_.bytes[at(v)];
    }
    return bytes;
  }

  double badness(std::int64_t bytes) const {
    const double share = static_cast<double>(bytes) / scale_;
    const double over = static_cast<double>(std::max<std::int64_t>(0, bytes - budget_)) / scale_;
    return over_budget_weight_ * over + share * share;
  }

  bool can_swap(Index i) const {
    const Index a = order_[at(i)], b = order_[at(i + 1)];
    for (Index u : p_.inputs[b]) {
      if (p_.producer[at(u)] == a) return false;
    }
    for (Index u : p_.inputs[a]) {
      if (p_.overwriter[at(u)] == b) return false;
    }
    return true;
  }

  double local(Index i) const {
    return badness(during(order_[at(i)], i, held_[at(i)])) +
           badness(during(order_[at(i + 1)], i + 1, held_[at(i + 1)]));
  }

  // Swaps positions i and i + 1 and returns by how much it got worse.
  double swap(Index i) {
    const double before = local(i);
    const Index a = order_[at(i)], b = order_[at(i + 1)];
    for (Index u : p_.inputs[a]) {
      if (last_[at(u)] == i) last_[at(u)] = i + 1;
    }
    for (Index u : p_.inputs[b]) {
      if (last_[at(u)] == i + 1 && !reads(p_, a, u)) last_[at(u)] = i;
    }
    std::swap(order_[at(i)], order_[at(i + 1)]);
    held_[at(i + 1)] = held_[at(i)] + made_by(p_, b) - freed(b, i);
    return local(i) - before;
  }

  Index size() const { return static_cast<Index>(order_.size()); }
  std::vector<Index> take() { return std::move(order_); }

 private:
  const Problem& p_;
  double over_budget_weight_;
  std::vector<Index> order_;
  std::int64_t budget_;
  std::vector<Index> last_;  // position of the last reader
  std::vector<std::int64_t> held_;
  double scale_ = 1;
};

}  // namespace

std::vector<std::int64_t> bytes_over_time(const Problem& problem, const std::vector<Index>& order) {
  const Mover mover(problem, order, 0, {});
  std::vector<std::int64_t> out;
  out.reserve(order.size());
  std::int64_t held = 0;
  for (Index v = 0; v < problem.values; ++v) {
    if (problem.producer[at(v)] == kNoIndex) held += problem.bytes[at(v)];
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    out.push_back(mover.during(order[i], static_cast<Index>(i), held));
    held += made_by(problem, order[i]) - mover.freed(order[i], static_cast<Index>(i));
  }
  return out;
}

std::vector<Index> list_order(const Problem& p, const OrderSearchOptions& options) {
  std::vector<Index> missing(at(p.tasks),
                             0);  // inputs not made, readers before an overwrite not run
  std::vector<Index> unread(at(p.values), 0);
  std::vector<Index> pending(at(p.values), 0);  // readers other than the overwriter still to run
  for (Index v = 0; v < p.values; ++v) {
    unread[at(v)] = static_cast<Index>(p.readers[v].size());
    for (Index task : p.readers[v]) {
      missing[at(task)] += p.producer[at(v)] != kNoIndex;
      pending[at(v)] += p.overwriter[at(v)] != kNoIndex && task != p.overwriter[at(v)];
    }
    if (pending[at(v)] > 0) ++missing[at(p.overwriter[at(v)])];
  }
  std::set<Index> ready;
  for (Index t = 0; t < p.tasks; ++t) {
    if (missing[at(t)] == 0) ready.insert(t);
  }
  std::vector<Index> order;
  while (!ready.empty()) {
    std::int64_t best_bytes = std::numeric_limits<std::int64_t>::max();
    Index best = kNoIndex;
    std::size_t looked = 0;
    for (auto it = ready.begin(); it != ready.end() && looked < options.list_candidates;
         ++it, ++looked) {
      std::int64_t bytes = made_by(p, *it);
      for (Index u : p.inputs[*it])
        bytes -= unread[at(u)] == 1 && !p.keep[at(u)] ? p.bytes[at(u)] : 0;
      if (bytes < best_bytes) {
        best_bytes = bytes;
        best = *it;
      }
    }
    ready.erase(best);
    order.push_back(best);
    const auto arrive = [&](Index task) {
      if (--missing[at(task)] == 0) ready.insert(task);
    };
    for (Index u : p.inputs[best]) {
      --unread[at(u)];
      const Index over = p.overwriter[at(u)];
      if (over != kNoIndex && over != best && --pending[at(u)] == 0) arrive(over);
    }
    for (Index v : p.outputs[best]) {
      for (Index task : p.readers[v]) arrive(task);
    }
  }
  return order;
}

std::vector<Index> lower_order(const Problem& problem, std::vector<Index> order,
                               std::int64_t budget, std::int64_t swaps, Random& random,
                               const OrderSearchOptions& options) {
  if (order.size() < 3) return order;
  Mover mover(problem, std::move(order), budget, options);
  const Index size = mover.size();
  const std::int64_t longest = std::min<std::int64_t>(size, options.longest_move);
  while (swaps > 0) {
    const auto start = static_cast<Index>(random.below(size));
    const bool later = random.chance(options.later_chance);
    const std::int64_t far = 1 + random.below(longest);
    double now = 0, best = -1e-15;
    std::int64_t done = 0, best_at = 0;
    Index where = later ? start : start - 1;
    while (done < far && where >= 0 && where + 1 < size && mover.can_swap(where)) {
      now += mover.swap(where);
      ++done;
      if (now < best) {
        best = now;
        best_at = done;
      }
      where += later ? 1 : -1;
    }
    for (; done > best_at; --done) {
      where -= later ? 1 : -1;
      mover.swap(where);
    }
    swaps -= done + 1;
  }
  return mover.take();
}

}  // namespace plimsoll::schedule
