#include "plimsoll/pack/repack.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/pack/bounds/bounds.h"
#include "plimsoll/pack/model/make_bodies.h"
#include "plimsoll/pack/model/pair_rules.h"
#include "plimsoll/pack/one_memory.h"
#include "plimsoll/pack/portfolio.h"

namespace plimsoll::pack {
namespace {

std::int64_t old_height(const Problem& problem) {
  std::int64_t height = 0;
  for (const Buffer& buffer : problem.buffers) {
    const auto& place = buffer.fixed ? buffer.fixed : buffer.hint;
    if (place && place->value <= kLargest - buffer.size.value)
      height = std::max(height, place->value + buffer.size.value);
  }
  return height;
}

class Repacker {
 public:
  Repacker(BodyModel model, std::int64_t capacity, const PackOptions& options, Budget& budget)
      : model_(std::move(model)), capacity_(capacity), options_(options), budget_(budget) {
    options_.goal = Goal::kFit;
    choose_kept();
  }

  Solution run() {
    Solution solution = attempt(0.2);
    for (std::size_t count = 1; !fits(solution) && kept_ > 0 && !budget_.over(); count *= 2) {
      release(solution, count);
      solution = attempt(kept_ > 0 ? 0.2 : 1.0);
    }
    return solution;
  }

 private:
  bool fits(const Solution& solution) const {
    return !solution.places.empty() && solution.height <= capacity_;
  }

  // Does body b at its old place clash with anything that stays?
  bool clashes(std::uint32_t b) const {
    std::vector<Forbidden> forbidden;
    for (std::uint32_t other = 0; other < model_.bodies.size(); ++other) {
      const std::int64_t place = model_.bodies[other].fixed;
      if (place < 0 || other == b) continue;
      forbidden.clear();
      append_forbidden(model_, other, b, forbidden);
      const std::int64_t difference = model_.bodies[b].hint - place;
      for (const Forbidden& range : forbidden) {
        if (range.begin < difference && difference < range.end) return true;
      }
    }
    return false;
  }

  void choose_kept() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t b = 0; b < model_.bodies.size(); ++b) {
      const Body& body = model_.bodies[b];
      if (body.fixed < 0 && body.hint >= 0) order.push_back(b);
    }
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
      return model_.bodies[a].height > model_.bodies[b].height;
    });
    pinned_.assign(model_.bodies.size(), 0);
    for (const std::uint32_t b : order) {
      Body& body = model_.bodies[b];
      if (body.hint > model_.ceiling(b, capacity_) || model_.lift(b, body.hint) != body.hint ||
          clashes(b))
        continue;
      body.fixed = body.hint;
      pinned_[b] = 1;
      ++kept_;
    }
    model_.has_fixed = model_.has_fixed || kept_ > 0;
  }

  Solution attempt(double share) {
    Budget part = budget_.share(share);
    Solution solution = solve(model_, capacity_, options_, part);
    budget_.settle(part);
    return solution;
  }

  // Releases up to `count` kept bodies that are alive with one that ended too high.
  void release(const Solution& solution, std::size_t count) {
    std::vector<std::uint32_t> near;
    for (std::uint32_t b = 0; b < model_.bodies.size(); ++b) {
      if (pinned_[b] && (solution.places.empty() || near_trouble(solution, b))) near.push_back(b);
    }
    if (near.empty() || count >= near.size()) {
      near.clear();
      for (std::uint32_t b = 0; b < model_.bodies.size(); ++b) {
        if (pinned_[b]) near.push_back(b);
      }
      count = std::max(count, near.size());
    }
    std::stable_sort(near.begin(), near.end(), [&](auto a, auto b) {
      return model_.bodies[a].height < model_.bodies[b].height;
    });
    for (std::size_t k = 0; k < std::min(count, near.size()); ++k) {
      model_.bodies[near[k]].fixed = -1;
      pinned_[near[k]] = 0;
      --kept_;
    }
  }

  bool near_trouble(const Solution& solution, std::uint32_t b) const {
    for (std::uint32_t other = 0; other < model_.bodies.size(); ++other) {
      if (model_.top_bytes(other, solution.places[other]) <= capacity_) continue;
      const Body& trouble = model_.bodies[other];
      if (trouble.first < model_.bodies[b].last && model_.bodies[b].first < trouble.last)
        return true;
    }
    return false;
  }

  BodyModel model_;
  std::int64_t capacity_;
  PackOptions options_;
  Budget& budget_;
  std::vector<char> pinned_;
  std::size_t kept_ = 0;
};

}  // namespace

Packing repack(const Problem& problem, const PackOptions& options, Budget& budget) {
  const std::int64_t capacity =
      problem.capacity() ? problem.capacity()->value : old_height(problem);
  BodyModel model = make_bodies(problem, 0, {});
  if (!model.contradiction.empty() || model.bodies.empty())
    return pack_one_memory(problem, options, budget);
  Solution solution = Repacker(model, capacity, options, budget).run();
  if (solution.places.empty() || solution.height > capacity)
    return pack_one_memory(problem, options, budget);
  Packing packing;
  packing.offsets.resize(problem.size());
  write_offsets(model, solution.places, packing.offsets);
  packing.heights = {Bytes(solution.height)};
  packing.lower_bound = Bytes(lower_bound(model).bytes);
  packing.status =
      packing.lower_bound == packing.height() ? PackStatus::kOptimal : PackStatus::kFeasible;
  packing.method = "kept hints, " + solution.method;
  return packing;
}

}  // namespace plimsoll::pack
