#include "plimsoll/plan/memories/place_in_memories.h"

#include <algorithm>
#include <map>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/checked.h"
#include "plimsoll/pack/pack.h"
#include "plimsoll/plan/memories/moved_plan.h"

namespace plimsoll::plan {
namespace {

// Counted work of one packing: a look first, and more only where that ends above the capacity.
constexpr double kPackSeconds[] = {0.0005, 0.01};

// As the caller says it: computing loses time to copies beside it.
double taxed_seconds(const Plan& plan, double tax) {
  double copying = 0;
  for (const PlanStep& step : plan.steps) copying += step.node.valid() ? 0 : step.seconds;
  return plan.predicted_seconds + tax * copying;
}

class Placer {
 public:
  Placer(const Plan& plan, const schedule::DeviceProfile& profile, const CostPartsOf& cost,
         const PlacementOptions& options)
      : plan_(plan),
        options_(options),
        model_(plan, traffic_of(plan, cost, profile.memory_bytes_per_second), profile) {}

  Result<Plan> run(PlacementSummary& summary) {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const BufferTraffic& traffic = model_.traffic().buffers[b];
      // An input may be written over once it is copied; state has to be there again.
      if (model_.must_leave(b) && traffic.source &&
          plan_.graph.value(traffic.begins_with).kind != ir::ValueKind::kInput)
        return fail(ErrorCode::kUsage,
                    "device memory of '{}' is read only, and steps write '{}', which begins there: "
                    "plan inference (--infer)",
                    model_.profile().name, plan_.buffers[b].name);
    }
    const auto seconds = [&](const Plan& plan) {
      return taxed_seconds(plan, model_.profile().copy_tax);
    };
    PLIMSOLL_TRY(Plan home, moved(start()));
    summary.home_seconds = seconds(home);
    if (options_.choice == PlacementChoice::kHome) return home;
    PLIMSOLL_TRY(Plan greedy, moved(greedy_start()));
    summary.greedy_seconds = seconds(greedy);
    if (options_.choice == PlacementChoice::kGreedy) return greedy;
    Plan best = std::move(summary.home_seconds <= summary.greedy_seconds ? home : greedy);
    for (const Placement& from : {start(), greedy_start()}) {
      const Placement found =
          search_placement(model_, model_.capacities(), from, options_.seed, options_.most_moves);
      PLIMSOLL_TRY(Plan next, moved(found));
      if (seconds(next) < seconds(best)) best = std::move(next);
    }
    return best;
  }

 private:
  // Everything in device memory that may be there.
  Placement start() const {
    Placement out = model_.all_home();
    for (std::size_t b = 0; b < out.level.size(); ++b) {
      if (model_.must_leave(b))
        std::fill(out.level[b].begin(), out.level[b].end(), std::uint8_t{1});
    }
    return out;
  }

  Placement greedy_start() const {
    std::vector<std::int64_t> capacity = model_.capacities();
    const Placement forced = start();
    const Evaluated taken = model_.evaluate(forced, capacity);
    for (std::size_t level = 0; level < capacity.size(); ++level)
      capacity[level] = std::max<std::int64_t>(0, capacity[level] - taken.most_bytes[level]);
    Placement out = greedy_placement(model_, capacity);
    for (std::size_t b = 0; b < out.level.size(); ++b) {
      if (!model_.must_leave(b)) continue;
      out.level[b] = forced.level[b];
      out.rest[b] = forced.rest[b];
    }
    return out;
  }

  // The plan with these windows; those that cannot be packed go back.
  Result<Plan> moved(Placement placement) const {
    for (;;) {
      const Evaluated found = model_.evaluate(placement, model_.capacities());
      MovedPlan next(plan_, model_, placement, found.windows);
      bool fits = true;
      for (std::uint8_t level = 1; level <= model_.levels(); ++level) {
        PLIMSOLL_TRY(const std::vector<std::size_t> too_high, pack_level(next, level));
        if (too_high.empty()) continue;
        fits = false;
        PLIMSOLL_RETURN_IF_ERROR(send_home(placement, next, level, too_high));
      }
      if (fits) return next.finish();
    }
  }

  // Sets offsets; the windows that end above the capacity.
  Result<std::vector<std::size_t>> pack_level(MovedPlan& next, std::uint8_t level) const {
    const std::vector<std::size_t> windows = next.windows_on(level);
    pack::Problem problem;
    for (const std::size_t w : windows) problem.buffers.push_back(next.pack_buffer(w));
    if (windows.empty()) return windows;
    const std::int64_t capacity = model_.profile().memories[level - 1U].bytes.value;
    pack::PackOptions how;
    how.goal = pack::Goal::kMinimize;
    how.deterministic = true;
    pack::Packing packing;
    for (const double seconds : kPackSeconds) {
      how.deadline_seconds = seconds;
      PLIMSOLL_TRY(packing, pack::pack(problem, how));
      if (packing.height().value <= capacity || packing.lower_bound.value > capacity) break;
    }
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      next.set_offset(windows[i], packing.offsets[i]);
      if (packing.offsets[i].value + problem.buffers[i].size.value > capacity)
        out.push_back(windows[i]);
    }
    return out;
  }

  Status send_home(Placement& placement, const MovedPlan& next, std::uint8_t level,
                   const std::vector<std::size_t>& windows) const {
    bool sent = false;
    const auto send = [&](const Window& window) {
      const auto b = static_cast<std::size_t>(window.buffer);
      if (model_.must_leave(b)) return;
      for (std::int32_t t = window.first; t <= window.last; ++t)
        placement.level[b][static_cast<std::size_t>(t)] = 0;
      sent = true;
    };
    for (const std::size_t w : windows) send(next.window(w));
    if (sent) return {};
    // What has to be there is too high: everybody else leaves.
    for (const std::size_t w : next.windows_on(level)) send(next.window(w));
    if (sent) return {};
    const schedule::MemoryLevel& memory = model_.profile().memories[level - 1U];
    return fail(ErrorCode::kDoesNotFit,
                "memory '{}' of '{}' has {}, and what the steps write takes {}; device memory is "
                "read only: plan a smaller batch or model",
                memory.name, model_.profile().name, human(memory.bytes),
                human(next.height_of(level)));
  }

  const Plan& plan_;
  const PlacementOptions& options_;
  PlacementModel model_;
};

MemorySummary summary_of(const Plan& plan, const schedule::MemoryLevel& memory, std::size_t arena) {
  MemorySummary out;
  out.name = memory.name;
  out.capacity = memory.bytes;
  if (arena < plan.arenas.size()) out.bytes = plan.arenas[arena].bytes;
  for (const PlanBuffer& buffer : plan.buffers) out.windows += buffer.arena == arena;
  for (const PlanStep& step : plan.steps) {
    if (step.node.valid() || step.outputs.empty()) continue;
    const Bytes bytes = ir::bytes_of(plan.graph.value(step.value).type);
    if (plan.buffer(step.outputs.front().buffer).arena == arena) out.copied_in += bytes;
    if (plan.buffer(step.inputs.front().buffer).arena == arena) out.copied_out += bytes;
  }
  return out;
}

}  // namespace

Result<PlacementSummary> place_in_memories(Plan& plan, const schedule::DeviceProfile& profile,
                                           const CostPartsOf& cost,
                                           const PlacementOptions& options) {
  for (const PlanStep& step : plan.steps) {
    if (step.stream != 0 || !step.node.valid())
      return fail(ErrorCode::kUsage,
                  "'{}' has several memories: a plan on them runs on one stream and neither swaps "
                  "nor encodes; leave out --streams, and swap and encode from --techniques",
                  profile.name);
  }
  PlacementSummary summary;
  summary.choice = options.choice;
  PLIMSOLL_TRY(Plan placed, Placer(plan, profile, cost, options).run(summary));
  plan = std::move(placed);
  summary.seconds = taxed_seconds(plan, profile.copy_tax);
  for (std::size_t level = 0; level < profile.memories.size(); ++level)
    summary.memories.push_back(summary_of(plan, profile.memories[level], level + kFirstLevelArena));
  return summary;
}

}  // namespace plimsoll::plan
