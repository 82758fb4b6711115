#include "plimsoll/pack/memories.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/pack/bounds/bounds.h"
#include "plimsoll/pack/model/make_bodies.h"
#include "plimsoll/pack/model/rigid.h"
#include "plimsoll/pack/portfolio.h"

namespace plimsoll::pack {
namespace {

constexpr std::size_t kMostAssignments = 4096;
constexpr double kShareOfOneMemory = 0.5;

struct Cluster {
  std::vector<std::uint32_t> buffers;
  std::int64_t bytes = 0;
  std::vector<std::uint8_t> allowed;  // cheapest first
  std::size_t choice = 0;             // index into allowed
};

class Assigner {
 public:
  Assigner(const Problem& problem, const PackOptions& options, Budget& budget)
      : problem_(problem), options_(options), budget_(budget) {
    gather_clusters();
    assignment_.assign(problem.size(), 0);
  }

  Packing run() {
    const double assignments = std::accumulate(
        clusters_.begin(), clusters_.end(), 1.0, [](double product, const Cluster& c) {
          return product * static_cast<double>(c.allowed.size());
        });
    if (assignments <= kMostAssignments) return enumerate();
    return spill();
  }

 private:
  void gather_clusters() {
    const RigidBodies rigid = bind_rigid(problem_);
    std::vector<std::size_t> cluster_of(rigid.frames.size(), problem_.size());
    for (std::uint32_t i = 0; i < problem_.size(); ++i) {
      const bool bound = rigid.contradiction.empty() && rigid.frame_of[i] != 0xffffffff;
      std::size_t at = clusters_.size();
      if (bound) {
        std::size_t& known = cluster_of[rigid.frame_of[i]];
        if (known == problem_.size()) known = at;
        at = known;
      }
      if (at == clusters_.size()) clusters_.push_back({{}, 0, allowed(i), 0});
      clusters_[at].buffers.push_back(i);
      clusters_[at].bytes += problem_.buffers[i].size.value;
    }
  }

  std::vector<std::uint8_t> allowed(std::size_t buffer) const {
    std::vector<std::uint8_t> out;
    for (std::size_t m = 0; m < problem_.memories.size(); ++m) {
      if (problem_.may_live_in.empty() || (problem_.may_live_in[buffer] >> m & 1))
        out.push_back(static_cast<std::uint8_t>(m));
    }
    std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) {
      return problem_.memories[a].cost_per_byte < problem_.memories[b].cost_per_byte;
    });
    return out;
  }

  void write_assignment() {
    for (const Cluster& cluster : clusters_) {
      for (const std::uint32_t i : cluster.buffers)
        assignment_[i] = cluster.allowed[cluster.choice];
    }
  }

  double cost(const Cluster& cluster, std::size_t choice) const {
    return static_cast<double>(cluster.bytes) *
           problem_.memories[cluster.allowed[choice]].cost_per_byte;
  }

  std::optional<std::int64_t> capacity(std::size_t memory) const {
    const auto& limit = problem_.memories[memory].capacity;
    return limit ? std::optional(limit->value) : std::nullopt;
  }

  struct Attempt {
    Packing packing;
    PackStatus status = PackStatus::kOptimal;  // the worst over all memories
    std::vector<std::uint8_t> full;            // memories that do not fit
  };

  Attempt attempt() {
    write_assignment();
    Attempt out;
    out.packing.offsets.resize(problem_.size());
    out.packing.memories = assignment_;
    out.packing.heights.resize(problem_.memories.size());
    for (std::size_t m = 0; m < problem_.memories.size(); ++m) {
      const BodyModel model = make_bodies(problem_, m, assignment_);
      if (!model.contradiction.empty()) {
        note(out, m, PackStatus::kInfeasible);
        continue;
      }
      Budget part = budget_.share(kShareOfOneMemory);
      const Solution solution = solve(model, capacity(m), options_, part);
      budget_.settle(part);
      note(out, m, status_of(solution, capacity(m)));
      if (m == 0) out.packing.lower_bound = Bytes(solution.lower_bound);
      out.packing.heights[m] = Bytes(model.bodies.empty() ? 0 : solution.height);
      if (solution.places.empty() && !model.bodies.empty()) continue;
      write_offsets(model, solution.places, out.packing.offsets);
      out.packing.method = solution.method;
    }
    for (const Cluster& cluster : clusters_) out.packing.cost += cost(cluster, cluster.choice);
    return out;
  }

  static void note(Attempt& attempt, std::size_t memory, PackStatus status) {
    if (status == PackStatus::kInfeasible || status == PackStatus::kUnknown)
      attempt.full.push_back(static_cast<std::uint8_t>(memory));
    if (attempt.status != PackStatus::kUnknown) attempt.status = std::max(attempt.status, status);
  }

  Packing enumerate() {
    std::vector<std::pair<double, std::vector<std::size_t>>> all{{0.0, {}}};
    for (const Cluster& cluster : clusters_) {
      std::vector<std::pair<double, std::vector<std::size_t>>> longer;
      for (const auto& [sum, choices] : all) {
        for (std::size_t choice = 0; choice < cluster.allowed.size(); ++choice) {
          longer.emplace_back(sum + cost(cluster, choice), choices);
          longer.back().second.push_back(choice);
        }
      }
      all = std::move(longer);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    bool all_refuted = true;
    for (const auto& [sum, choices] : all) {
      for (std::size_t k = 0; k < choices.size(); ++k) clusters_[k].choice = choices[k];
      Attempt now = attempt();
      if (now.full.empty()) {
        now.packing.status = all_refuted ? PackStatus::kOptimal : PackStatus::kFeasible;
        return std::move(now.packing);
      }
      all_refuted = all_refuted && now.status == PackStatus::kInfeasible;
      if (budget_.over()) {
        all_refuted = false;
        break;
      }
    }
    return no_answer(all_refuted);
  }

  Packing no_answer(bool refuted) const {
    Packing packing;
    packing.status = refuted ? PackStatus::kInfeasible : PackStatus::kUnknown;
    packing.method = "memories";
    for (std::size_t i = 0; refuted && i < problem_.size(); ++i)
      packing.core.push_back(BufferId(i));
    return packing;
  }

  Packing spill() {
    while (relieve_overload()) {
    }
    while (true) {
      Attempt now = attempt();
      if (now.full.empty()) {
        now.packing.status = PackStatus::kFeasible;
        return std::move(now.packing);
      }
      if (budget_.over() || !spill_above(now)) return no_answer(false);
    }
  }

  // While the bound alone says that a memory is too small, its fullest moment gives one cluster up.
  bool relieve_overload() {
    write_assignment();
    for (std::size_t m = 0; m < problem_.memories.size(); ++m) {
      if (!capacity(m)) continue;
      const BodyModel model = make_bodies(problem_, m, assignment_);
      if (!model.contradiction.empty()) continue;
      const Bound bound = lower_bound(model);
      if (bound.bytes > *capacity(m)) return spill_cheapest(bound.witnesses);
    }
    return false;
  }

  bool spill_above(const Attempt& attempt) {
    std::vector<BufferId> high;
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      const std::uint8_t m = assignment_[i];
      if (!std::count(attempt.full.begin(), attempt.full.end(), m) || !capacity(m)) continue;
      if (attempt.packing.offsets[i].value + problem_.buffers[i].size.value > *capacity(m))
        high.push_back(BufferId(i));
    }
    return spill_cheapest(high);
  }

  // Of the clusters of these buffers, the one whose next memory costs least more per byte.
  bool spill_cheapest(std::span<const BufferId> buffers) {
    std::vector<char> marked(problem_.size(), 0);
    for (const BufferId id : buffers) marked[id.index()] = 1;
    Cluster* best = nullptr;
    double best_regret = 0;
    for (Cluster& cluster : clusters_) {
      if (cluster.choice + 1 >= cluster.allowed.size()) continue;
      if (std::none_of(cluster.buffers.begin(), cluster.buffers.end(),
                       [&](auto i) { return marked[i]; }))
        continue;
      const double extra = cost(cluster, cluster.choice + 1) - cost(cluster, cluster.choice);
      const double regret = extra / std::max(1.0, static_cast<double>(cluster.bytes));
      if (!best || regret < best_regret || (regret == best_regret && cluster.bytes > best->bytes))
        best = &cluster, best_regret = regret;
    }
    if (best) ++best->choice;
    return best != nullptr;
  }

  const Problem& problem_;
  const PackOptions& options_;
  Budget& budget_;
  std::vector<Cluster> clusters_;
  std::vector<std::uint8_t> assignment_;
};

}  // namespace

Packing pack_memories(const Problem& problem, const PackOptions& options, Budget& budget) {
  return Assigner(problem, options, budget).run();
}

}  // namespace plimsoll::pack
