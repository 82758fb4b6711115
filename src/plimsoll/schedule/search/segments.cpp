#include "plimsoll/schedule/search/segments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plimsoll/schedule/search/replay.h"

namespace plimsoll::schedule {
namespace {

class Segments {
 public:
  Segments(const Problem& problem, Index first_backward, double tolerance)
      : p_(problem), first_backward_(first_backward), tolerance_(tolerance) {
    const std::size_t forward = at(first_backward);
    std::vector<std::int64_t> change(forward + 1, 0);
    filled_.assign(forward + 1, 0);
    for (Index v = 0; v < p_.values; ++v) {
      const Index made = p_.producer[at(v)];
      if (made == kNoIndex || made >= first_backward) continue;
      const auto readers = p_.readers[v];
      if (!readers.empty() && readers.back() >= first_backward)
        filled_[at(made) + 1] += p_.bytes[at(v)];
      const auto last = std::lower_bound(readers.begin(), readers.end(), first_backward);
      if (last == readers.begin()) continue;
      change[at(made) + 1] += p_.bytes[at(v)];
      change[at(*(last - 1)) + 1 > forward ? forward : at(*(last - 1)) + 1] -= p_.bytes[at(v)];
    }
    std::partial_sum(filled_.begin(), filled_.end(), filled_.begin());
    crossing_.resize(forward + 1);
    std::partial_sum(change.begin(), change.end(), crossing_.begin());
    for (Index t = 0; t < first_backward; ++t) {
      if (made_bytes(t) > 0) by_density_.push_back(t);
    }
    std::stable_sort(by_density_.begin(), by_density_.end(),
                     [&](Index a, Index b) { return density(a) > density(b); });
  }

  // The segment of every forward task; -1 in the backward half. Of like size, or shrinking to the
  // last.
  std::vector<Index> cut(int segments, bool shrinking) const {
    std::vector<Index> group(at(p_.tasks), -1);
    const auto total = static_cast<double>(filled_.back());
    double before = 0;
    Index from = 0;
    for (int s = 0; s < segments && from < first_backward_; ++s) {
      const double share =
          shrinking ? 2.0 * (segments - s) / (1.0 * segments * (segments + 1)) : 1.0 / segments;
      before += share * total;
      const Index to =
          s + 1 == segments ? first_backward_ : place(before, share * total * tolerance_);
      for (Index t = from; t < to; ++t) group[at(t)] = s;
      from = std::max(from, to);
    }
    return group;
  }

  // The plan that keeps what crosses a cut and the `kept` densest tasks.
  ActionList plan(const std::vector<Index>& group, std::size_t kept) const {
    std::vector<char> stays(at(p_.tasks), 0);
    for (std::size_t i = 0; i < kept; ++i) stays[at(by_density_[i])] = 1;
    const Index last = first_backward_ > 0 ? group[at(first_backward_ - 1)] : -1;
    std::vector<char> dropped(at(p_.values), 0);
    for (Index v = 0; v < p_.values; ++v) {
      const Index made = p_.producer[at(v)];
      if (made == kNoIndex || made >= first_backward_ || stays[at(made)] ||
          group[at(made)] == last || !p_.recomputable(v) || p_.keep[at(v)])
        continue;
      const auto readers = p_.readers[v];
      dropped[at(v)] = std::none_of(readers.begin(), readers.end(), [&](Index reader) {
        return reader < first_backward_ && group[at(reader)] != group[at(made)];
      });
    }
    return replay(p_, std::move(dropped), group, first_backward_);
  }

  std::size_t choices() const { return by_density_.size(); }

 private:
  std::int64_t made_bytes(Index task) const {
    std::int64_t bytes = 0;
    for (Index v : p_.outputs[task]) bytes += p_.bytes[at(v)];
    return bytes;
  }
  double density(Index task) const {
    return p_.seconds[at(task)] / static_cast<double>(made_bytes(task));
  }

  // Where least crosses, among the places with about `bytes` before them.
  Index place(double bytes, double tolerance) const {
    const auto low = std::lower_bound(filled_.begin(), filled_.end() - 1,
                                      static_cast<std::int64_t>(bytes - tolerance));
    const auto high =
        std::upper_bound(low, filled_.end() - 1, static_cast<std::int64_t>(bytes + tolerance));
    auto best = low;
    for (auto it = low; it != high; ++it) {
      if (crossing_[at(static_cast<Index>(it - filled_.begin()))] <
          crossing_[at(static_cast<Index>(best - filled_.begin()))])
        best = it;
    }
    return static_cast<Index>(best - filled_.begin());
  }

  const Problem& p_;
  Index first_backward_;
  double tolerance_;
  std::vector<std::int64_t>
      filled_;  // per place: bytes made before it that the backward half reads
  std::vector<std::int64_t>
      crossing_;  // per place: bytes made before it and read in the forward half after
  std::vector<Index> by_density_;  // forward tasks, most seconds a byte first
};

// Numbers of segments around the square root, both ways, by steps of a third.
std::vector<int> ladder(Index forward, const SegmentOptions& how) {
  std::vector<int> out;
  const double root = std::sqrt(static_cast<double>(std::max<Index>(1, forward)));
  const double most = forward / how.tasks_per_segment;
  double more = root, less = root / how.step;
  while (more <= forward || less >= how.fewest_segments) {
    if (less >= how.fewest_segments) out.push_back(static_cast<int>(std::lround(less)));
    if (more <= most) out.push_back(static_cast<int>(std::lround(more)));
    if (less < how.fewest_segments && more > most) break;
    more *= how.step;
    less /= how.step;
  }
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

void try_segments(const Problem& problem, Index first_backward, std::int64_t budget,
                  const SegmentOptions& options, const std::function<bool()>& stop,
                  const std::function<void(const ActionList&)>& offer) {
  if (first_backward < options.fewest_tasks || first_backward >= problem.tasks) return;
  const Segments segments(problem, first_backward, options.cut_tolerance);
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  const auto fill = [&](const std::vector<Index>& group) {
    const auto attempt = [&](std::size_t kept) {
      const ActionList list = segments.plan(group, kept);
      if (!respects_updates(problem, list)) return false;
      const std::int64_t peak = link(problem, list).peak_bytes.value;
      if (peak <= budget || peak < lowest) offer(list);
      lowest = std::min(lowest, peak);
      return peak <= budget;
    };
    std::size_t fits = 0, too_many = segments.choices() + 1;
    if (!attempt(0)) return;
    while (too_many - fits > 1 + segments.choices() / options.resolution && !stop()) {
      const std::size_t middle = fits + (too_many - fits) / 2;
      (attempt(middle) ? fits : too_many) = middle;
    }
  };
  for (int count : ladder(first_backward, options)) {
    for (bool shrinking : {true, false}) {
      if (stop()) return;
      fill(segments.cut(count, shrinking));
    }
  }
}

}  // namespace plimsoll::schedule
