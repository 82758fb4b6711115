#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "plimsoll/schedule/search/order.h"

namespace plimsoll::schedule {
namespace {

// Per task: the first sink of the given order that needs it, also by updates that wait for it.
std::vector<Index> first_sinks(const Problem& p) {
  std::vector<Index> rank(at(p.tasks), p.tasks);
  for (Index t = p.tasks - 1; t >= 0; --t) {
    Index& own = rank[at(t)];
    for (Index v : p.outputs[t]) {
      for (Index reader : p.readers[v]) own = std::min(own, rank[at(reader)]);
    }
    for (Index u : p.inputs[t]) {
      const Index over = p.overwriter[at(u)];
      if (over != kNoIndex && over != t) own = std::min(own, rank[at(over)]);
    }
    if (own == p.tasks) own = t;
  }
  return rank;
}

std::vector<Index> sorted_by(const std::vector<Index>& rank) {
  std::vector<Index> order(rank.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return rank[at(a)] < rank[at(b)]; });
  return order;
}

// Bytes held, times how long.
double area(const Problem& p, const std::vector<Index>& order) {
  const std::vector<std::int64_t> bytes = bytes_over_time(p, order);
  double out = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    out += static_cast<double>(bytes[i]) * (p.total_seconds > 0 ? p.seconds[at(order[i])] : 1);
  return out;
}

// Lets a sink be finished together with the one before it wherever that holds fewer bytes over
// time.
std::vector<Index> joined(const Problem& p, std::vector<Index> rank, std::int64_t limit) {
  std::vector<Index> sinks = rank;
  std::sort(sinks.begin(), sinks.end());
  sinks.erase(std::unique(sinks.begin(), sinks.end()), sinks.end());
  if (std::ssize(sinks) * p.tasks > limit) return rank;
  double least = area(p, sorted_by(rank));
  for (std::size_t i = 1; i < sinks.size(); ++i) {
    std::vector<Index> together = rank;
    std::replace(together.begin(), together.end(), sinks[i], sinks[i - 1]);
    const double bytes = area(p, sorted_by(together));
    if (bytes >= least) continue;
    least = bytes;
    rank = std::move(together);
    sinks[i] = sinks[i - 1];
  }
  return rank;
}

// What is ready with an earlier sink may run then, although a later one needs it first. Of the
// tasks of a sink the front waits for other sinks only, and the rest for the front too: the
// gradient of a layer's inputs, and what the layer below makes of it. Of every sink nothing is
// advanced, or its front, or all of it.
class Advancer {
 public:
  Advancer(const Problem& p, const std::vector<Index>& sink) : p_(p), sink_(sink) {
    front_.assign(at(p.tasks), 1);
    free_.assign(at(p.tasks), 1);
    for (Index t = 0; t < p.tasks; ++t) {
      for_each_before(t, [&](Index before) {
        free_[at(t)] = 0;
        if (sink_[at(before)] == sink_[at(t)] && !free_[at(before)]) front_[at(t)] = 0;
      });
    }
  }

  // Each sink as it holds the fewest bytes over time, beginning with all fronts advanced.
  std::vector<Index> run(std::int64_t limit) const {
    std::vector<Index> sinks = sink_;
    std::sort(sinks.begin(), sinks.end(), std::greater<>());
    sinks.erase(std::unique(sinks.begin(), sinks.end()), sinks.end());
    std::vector<char> advanced(at(p_.tasks), kAll);  // by sink
    for (Index t = 0; t < p_.tasks; ++t) {
      for_each_before(t, [&](Index before) {
        if (sink_[at(before)] != sink_[at(t)] && !front_[at(before)] && !free_[at(before)])
          advanced[at(sink_[at(before)])] = kFront;
      });
    }
    std::vector<Index> best = ranks(advanced);
    if (std::ssize(sinks) * p_.tasks > limit) return best;
    double least = area(p_, sorted_by(best));
    for (int pass = 0; pass < 2; ++pass) {
      for (const Index sink : sinks) {
        for (const char how : {kNothing, kFront, kAll}) {
          if (advanced[at(sink)] == how) continue;
          const char before = std::exchange(advanced[at(sink)], how);
          std::vector<Index> next = ranks(advanced);
          const double bytes = area(p_, sorted_by(next));
          if (bytes < least) {
            least = bytes;
            best = std::move(next);
          } else {
            advanced[at(sink)] = before;
          }
        }
      }
    }
    return best;
  }

 private:
  static constexpr char kNothing = 0, kFront = 1, kAll = 2;

  // The tasks that have to run before it.
  template <typename Visit>
  void for_each_before(Index task, Visit visit) const {
    for (Index u : p_.inputs[task]) {
      if (const Index made = p_.producer[at(u)]; made != kNoIndex) visit(made);
      if (p_.overwriter[at(u)] != task) continue;
      for (Index reader : p_.readers[u]) {
        if (reader != task) visit(reader);
      }
    }
  }

  std::vector<Index> ranks(const std::vector<char>& advanced) const {
    std::vector<Index> out(at(p_.tasks), kNoIndex);
    for (Index t = 0; t < p_.tasks; ++t) {
      if (free_[at(t)]) continue;
      const char how = advanced[at(sink_[at(t)])];
      for_each_before(t, [&](Index before) { out[at(t)] = std::max(out[at(t)], out[at(before)]); });
      if (how == kNothing || (how == kFront && !front_[at(t)]) || out[at(t)] == kNoIndex)
        out[at(t)] = sink_[at(t)];
    }
    for (Index t = p_.tasks - 1; t >= 0; --t) {
      if (!free_[at(t)]) continue;
      out[at(t)] = sink_[at(t)];
      for (Index v : p_.outputs[t]) {
        for (Index reader : p_.readers[v]) out[at(t)] = std::min(out[at(t)], out[at(reader)]);
      }
    }
    return out;
  }

  const Problem& p_;
  const std::vector<Index>& sink_;
  std::vector<char> front_;
  std::vector<char> free_;  // waits for nothing, and runs when somebody wants it
};

// Ranks of sinks: of those joined and those with what is ready advanced, the ones that hold fewer
// bytes over time.
std::vector<Index> close_sinks(Problem p, Index first_backward, std::int64_t limit) {
  const std::vector<Index> sinks = first_sinks(p);
  std::vector<Index> together = joined(p, sinks, limit);
  for (Index v = 0; v < p.values; ++v) {
    if (p.keep[at(v)] || p.producer[at(v)] < first_backward) p.bytes[at(v)] = 0;
  }
  std::vector<Index> early = Advancer(p, sinks).run(limit);
  const bool better = area(p, sorted_by(early)) < area(p, sorted_by(together));
  return better ? early : together;
}

}  // namespace

std::vector<Index> sink_order(const Problem& p) {
  return sorted_by(first_sinks(p));
}

std::vector<Index> mirror_order(const Problem& p, Index first_backward,
                                const OrderSearchOptions& options) {
  std::vector<Index> order = sorted_by(close_sinks(p, first_backward, options.join_limit));
  std::stable_partition(order.begin(), order.end(), [&](Index t) { return t < first_backward; });
  std::vector<Index> last(at(first_backward),
                          0);  // place at which the other half is done with the task
  for (std::size_t place = at(first_backward); place < order.size(); ++place) {
    for (Index u : p.inputs[order[place]]) {
      const Index made = p.producer[at(u)];
      if (made != kNoIndex && made < first_backward) last[at(made)] = static_cast<Index>(place);
    }
  }
  for (Index t = first_backward - 1; t >= 0; --t) {
    for (Index v : p.outputs[t]) {
      for (Index reader : p.readers[v]) {
        if (reader < first_backward) last[at(t)] = std::max(last[at(t)], last[at(reader)]);
      }
    }
  }
  std::iota(order.begin(), order.begin() + first_backward, 0);
  std::stable_sort(order.begin(), order.begin() + first_backward,
                   [&](Index a, Index b) { return last[at(a)] > last[at(b)]; });
  return order;
}

}  // namespace plimsoll::schedule
