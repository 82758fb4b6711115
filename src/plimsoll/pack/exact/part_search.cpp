#include "plimsoll/pack/exact/part_search.h"

#include <algorithm>
#include <functional>
#include <thread>

#include "plimsoll/pack/exact/point_cover.h"

namespace plimsoll::pack {
namespace {

constexpr std::int64_t kFirstEffort = 4000;  // nodes per question at the first level

CoverOptions cover_options(const PackOptions& options, int worker) {
  return {.memo = options.memo,
          .fail_first = options.fail_first,
          .decompose = options.decompose,
          .backjump = options.backjump,
          .snug_cover = options.snug_cover,
          .guided_dives = options.guided_dives,
          .seed = options.seed * 1000003 + static_cast<std::uint64_t>(worker)};
}

// Runs `work(worker, budget)` on every worker; the first that returns true stops the others.
void race(const PackOptions& options, Budget& budget,
          const std::function<bool(int, Budget&)>& work) {
  const int threads = options.deterministic ? 1 : options.threads;
  if (threads <= 1) {
    work(0, budget);
    return;
  }
  std::atomic<bool> won{false};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&, worker] {
      Budget own = budget.in_race(won);
      if (work(worker, own)) won.store(true, std::memory_order_relaxed);
    });
  }
  for (std::thread& worker : workers) worker.join();
}

// The lowest height above `capacity` bytes at which any body of the part could end.
std::int64_t next_height(const BodyModel& model, const Part& part, std::int64_t capacity) {
  std::int64_t next = kNever;
  for (const std::uint32_t b : part.bodies) {
    const std::int64_t overhang = model.bodies[b].overhang;
    next = std::min(next, (capacity + overhang) / model.unit * model.unit + model.unit - overhang);
  }
  return next;
}

class Question {
 public:
  Question(const BodyModel& model, const Part& part, const CoverOptions& options)
      : model_(model), part_(part), options_(options) {}

  // Asks for a packing within `capacity`; the search, its memo and its restarts live on.
  CoverResult ask(std::int64_t capacity, std::int64_t nodes, Budget& budget) {
    CoverTask task = make_cover_task(model_, part_.bodies, part_.sections, capacity);
    if (!search_) {
      order_.clear();
      for (const CoverItem& item : task.items) order_.push_back(item.body);
      search_ = std::make_unique<PointCover>(std::move(task), options_);
    } else if (capacity != capacity_) {
      std::vector<std::int64_t> highest;
      for (const CoverItem& item : task.items) highest.push_back(item.highest);
      search_->set_limits(task.ceilings, highest);
    }
    capacity_ = capacity;
    budget.spend(static_cast<std::int64_t>(order_.size()) * 8);
    return search_->run(budget, nodes);
  }

  // Places in the order of the part's bodies, and their height.
  std::pair<std::int64_t, std::vector<std::int64_t>> answer() const {
    std::vector<std::pair<std::uint32_t, std::int64_t>> by_body;
    std::int64_t height = 0;
    for (std::size_t k = 0; k < order_.size(); ++k) {
      by_body.emplace_back(order_[k], search_->places()[k]);
      height = std::max(height, model_.top_bytes(order_[k], search_->places()[k]));
    }
    std::sort(by_body.begin(), by_body.end());
    std::vector<std::int64_t> places;
    for (const auto& [body, place] : by_body) places.push_back(place);
    return {height, std::move(places)};
  }

 private:
  const BodyModel& model_;
  const Part& part_;
  CoverOptions options_;
  std::unique_ptr<PointCover> search_;
  std::vector<std::uint32_t> order_;
  std::int64_t capacity_ = -1;
};

class Minimizer {
 public:
  Minimizer(const BodyModel& model, const Part& part, std::int64_t target,
            const CoverOptions& options, Budget& budget, Incumbent& incumbent)
      : at_bound_(model, part, options),
        between_(model, part, options),
        model_(model),
        part_(part),
        target_(target),
        budget_(budget),
        incumbent_(incumbent) {}

  bool run() {
    for (std::int64_t effort = kFirstEffort; !done() && !budget_.over(); effort *= 2) {
      step(at_bound_, goal(), effort);
      for (const std::int64_t eighths : {4, 6, 7, 8}) {
        if (done()) break;
        const std::int64_t room = incumbent_.height() - goal();
        const std::int64_t capacity =
            std::min(goal() + room / 8 * eighths + room % 8, incumbent_.height() - 1);
        if (capacity > goal()) step(between_, capacity, effort / 4);
      }
    }
    return done();
  }

 private:
  std::int64_t goal() const { return std::max(target_, incumbent_.lower()); }
  bool done() const { return incumbent_.height() <= goal(); }

  void step(Question& question, std::int64_t capacity, std::int64_t nodes) {
    const CoverResult result = question.ask(capacity, nodes, budget_);
    if (result == CoverResult::kFound) {
      auto [height, places] = question.answer();
      incumbent_.offer(height, std::move(places));
    } else if (result == CoverResult::kImpossible) {
      incumbent_.raise_lower(next_height(model_, part_, capacity));
    }
  }

  Question at_bound_;
  Question between_;
  const BodyModel& model_;
  const Part& part_;
  const std::int64_t target_;
  Budget& budget_;
  Incumbent& incumbent_;
};

}  // namespace

void Incumbent::offer(std::int64_t height, std::vector<std::int64_t> places) {
  const std::lock_guard lock(mutex_);
  if (height >= height_) return;
  height_ = height;
  places_ = std::move(places);
}
void Incumbent::raise_lower(std::int64_t lower) {
  const std::lock_guard lock(mutex_);
  lower_ = std::max(lower_, lower);
}
std::int64_t Incumbent::height() const {
  const std::lock_guard lock(mutex_);
  return height_;
}
std::int64_t Incumbent::lower() const {
  const std::lock_guard lock(mutex_);
  return lower_;
}
std::vector<std::int64_t> Incumbent::places() const {
  const std::lock_guard lock(mutex_);
  return places_;
}

std::vector<Part> split_parts(const BodyModel& model, bool split) {
  std::vector<std::int32_t> crossing(static_cast<std::size_t>(model.sections) + 1, 0);
  for (const Body& body : model.bodies) {
    ++crossing[static_cast<std::size_t>(body.first)];
    --crossing[static_cast<std::size_t>(body.last) - 1];
  }
  std::vector<Part> parts;
  std::vector<std::uint32_t> part_of(static_cast<std::size_t>(model.sections), 0);
  std::int32_t begin = 0;
  std::int32_t open = 0;
  for (std::int32_t s = 0; s < model.sections; ++s) {
    open += crossing[static_cast<std::size_t>(s)];
    part_of[static_cast<std::size_t>(s)] = static_cast<std::uint32_t>(parts.size());
    if ((split && open == 0) || s + 1 == model.sections) {
      parts.push_back({{begin, s + 1}, {}});
      begin = s + 1;
    }
  }
  for (std::uint32_t b = 0; b < model.bodies.size(); ++b) {
    parts[part_of[static_cast<std::size_t>(model.bodies[b].first)]].bodies.push_back(b);
  }
  return parts;
}

void fit_part(const BodyModel& model, const Part& part, std::int64_t capacity,
              const PackOptions& options, Budget& budget, Incumbent& incumbent) {
  race(options, budget, [&](int worker, Budget& own) {
    Question question(model, part, cover_options(options, worker));
    const CoverResult result = question.ask(capacity, kLargest / 2, own);
    if (result == CoverResult::kFound) {
      auto [height, places] = question.answer();
      incumbent.offer(height, std::move(places));
    } else if (result == CoverResult::kImpossible) {
      incumbent.raise_lower(next_height(model, part, capacity));
    }
    return result != CoverResult::kLimit;
  });
}

void minimize_part(const BodyModel& model, const Part& part, std::int64_t target,
                   const PackOptions& options, Budget& budget, Incumbent& incumbent) {
  race(options, budget, [&](int worker, Budget& own) {
    return Minimizer(model, part, target, cover_options(options, worker), own, incumbent).run();
  });
}

}  // namespace plimsoll::pack
