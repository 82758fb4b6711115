#include "plimsoll/schedule/search/beam_order.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include "plimsoll/base/random.h"

namespace plimsoll::schedule {
namespace {

constexpr std::uint64_t kSetSeed = 1;  // of the numbers that tell sets of tasks apart

// A set of tasks that have run, and the best way to it.
struct Partial {
  std::vector<Index> unread;   // by value: readers that have not run
  std::vector<Index> missing;  // by task: what it waits for
  std::vector<Index> ready;
  std::int64_t held = 0;
  std::int64_t peak = 0;
  std::uint64_t set = 0;
};

struct Extension {
  std::int64_t peak;
  std::int64_t held;
  std::uint64_t set;
  Index from;
  Index task;
};

class Beam {
 public:
  Beam(const Problem& problem, Index width) : p_(problem), width_(width), key_(at(problem.tasks)) {
    Random random(kSetSeed);
    for (std::uint64_t& key : key_) key = random.next();
    find_successors();
  }

  std::vector<Index> run(const std::function<bool()>& stop) {
    now_.assign(1, first());
    for (Index place = 0; place < p_.tasks; ++place) {
      if (stop()) return {};
      extend();
      if (now_.empty()) return {};
    }
    return way_to_best();
  }

 private:
  // Who waits for a task: readers of what it makes, and who writes over what it reads.
  void find_successors() {
    std::vector<std::vector<Index>> after(at(p_.tasks));
    for (Index v = 0; v < p_.values; ++v) {
      const Index made = p_.producer[at(v)];
      const Index over = p_.overwriter[at(v)];
      for (Index reader : p_.readers[v]) {
        if (made != kNoIndex) after[at(made)].push_back(reader);
        if (over != kNoIndex && over != reader) after[at(reader)].push_back(over);
      }
    }
    for (const auto& list : after) {
      successors_.items.insert(successors_.items.end(), list.begin(), list.end());
      successors_.close();
    }
  }

  Partial first() const {
    Partial out;
    out.missing.assign(at(p_.tasks), 0);
    for (Index next : successors_.items) ++out.missing[at(next)];
    for (Index t = 0; t < p_.tasks; ++t) {
      if (out.missing[at(t)] == 0) out.ready.push_back(t);
    }
    for (Index v = 0; v < p_.values; ++v) {
      out.unread.push_back(static_cast<Index>(p_.readers[v].size()));
      if (p_.producer[at(v)] == kNoIndex) out.held += p_.bytes[at(v)];
    }
    out.peak = out.held;
    return out;
  }

  // What running a task would hold during and after it (as Mover of order.cpp counts).
  Extension extension(const Partial& from, Index index, Index task) const {
    std::int64_t during = from.held + p_.scratch[at(task)], held = from.held;
    const auto ends = [&](Index u) { return from.unread[at(u)] == 1 && !p_.keep[at(u)]; };
    for (Index v : p_.outputs[task]) {
      during += p_.bytes[at(v)];
      if (!p_.readers[v].empty() || p_.keep[at(v)]) held += p_.bytes[at(v)];
      const Index over = p_.in_place[at(v)];
      if (over != kNoIndex && ends(over)) during -= p_.bytes[at(v)];
    }
    for (Index u : p_.inputs[task]) {
      if (ends(u)) held -= p_.bytes[at(u)];
    }
    return {std::max(from.peak, during), held, from.set ^ key_[at(task)], index, task};
  }

  void extend() {
    offers_.clear();
    for (std::size_t i = 0; i < now_.size(); ++i) {
      for (Index task : now_[i].ready)
        offers_.push_back(extension(now_[i], static_cast<Index>(i), task));
    }
    std::sort(offers_.begin(), offers_.end(), [](const Extension& a, const Extension& b) {
      if (a.peak != b.peak) return a.peak < b.peak;
      if (a.held != b.held) return a.held < b.held;
      return std::pair(a.task, a.from) < std::pair(b.task, b.from);
    });
    seen_.clear();
    next_.resize(std::min(offers_.size(), at(width_)));
    steps_.emplace_back();
    std::size_t taken = 0;
    for (const Extension& offer : offers_) {
      if (taken == next_.size()) break;
      if (!seen_.insert(offer.set).second) continue;
      take(offer, next_[taken++]);
      steps_.back().emplace_back(offer.from, offer.task);
    }
    next_.resize(taken);
    std::swap(now_, next_);
  }

  void take(const Extension& offer, Partial& to) const {
    to = now_[at(offer.from)];  // copies into the memory that is there
    to.peak = offer.peak;
    to.held = offer.held;
    to.set = offer.set;
    to.ready.erase(std::find(to.ready.begin(), to.ready.end(), offer.task));
    for (Index u : p_.inputs[offer.task]) --to.unread[at(u)];
    for (Index next : successors_[offer.task]) {
      if (--to.missing[at(next)] == 0) to.ready.push_back(next);
    }
  }

  // The first has the lowest peak; back along the tasks that were taken.
  std::vector<Index> way_to_best() const {
    std::vector<Index> order(at(p_.tasks));
    Index where = 0;
    for (std::size_t place = order.size(); place-- > 0;) {
      const auto [from, task] = steps_[place][at(where)];
      order[place] = task;
      where = from;
    }
    return order;
  }

  const Problem& p_;
  Index width_;
  std::vector<std::uint64_t> key_;  // by task
  Lists successors_;
  std::vector<Partial> now_, next_;
  std::vector<Extension> offers_;
  std::unordered_set<std::uint64_t> seen_;
  std::vector<std::vector<std::pair<Index, Index>>> steps_;  // by place: (from, task)
};

}  // namespace

std::int64_t beam_bytes(const Problem& problem) {
  return std::int64_t{4} * problem.tasks * (std::int64_t{problem.tasks} + problem.values);
}

std::vector<Index> beam_order(const Problem& problem, Index width,
                              const std::function<bool()>& stop) {
  if (problem.tasks == 0 || width < 1) return {};
  return Beam(problem, width).run(stop);
}

}  // namespace plimsoll::schedule
