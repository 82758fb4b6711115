#include "plimsoll/plan/streams.h"

#include <algorithm>
#include <optional>

#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/pack/bounds/antichain.h"
#include "plimsoll/pack/pack.h"
#include "plimsoll/plan/arena_ends.h"
#include "plimsoll/plan/step_order.h"
#include "plimsoll/plan/step_waits.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::plan {
namespace {

constexpr double kHandover = 1e-6;  // seconds that data from another stream comes later

bool is_collective(const Plan& plan, const PlanStep& step) {
  return step.node.valid() && ops::is_collective(plan.graph.node(step.node).op);
}

bool has_collectives(const Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [&](const PlanStep& step) { return is_collective(plan, step); });
}

// One stream of computation becomes several; copies and collectives have streams of their own.
class Spreader {
 public:
  Spreader(Plan plan, const StreamOptions& options, bool keep_places)
      : plan_(std::move(plan)),
        options_(options),
        compute_(static_cast<std::size_t>(options.streams)),
        keep_places_(keep_places) {
    std::size_t copies = 0;
    for (const PlanStep& step : plan_.steps) copies = std::max<std::size_t>(copies, step.stream);
    collectives_ = compute_ + copies;
    streams_ = collectives_ + (has_collectives(plan_) ? 1 : 0);
  }

  Result<Plan> run() {
    StepOrder order = order_of_steps(plan_, keep_places_);
    before_ = std::move(order.before);
    touched_ = std::move(order.touched);
    assign_streams();
    known_ = set_waits(plan_, std::move(before_), streams_);
    if (!keep_places_) PLIMSOLL_RETURN_IF_ERROR(pack_again());
    return std::move(plan_);
  }

 private:
  void assign_streams() {
    std::vector<double> free_at(streams_, 0);
    std::vector<double> done(plan_.steps.size(), 0);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const auto start_on = [&](std::size_t stream) {
        double start = free_at[stream];
        for (const std::size_t d : before_[s])
          start = std::max(start, done[d] + (plan_.steps[d].stream == stream ? 0 : kHandover));
        return start;
      };
      std::size_t best = 0;
      if (is_collective(plan_, plan_.steps[s])) {
        best = collectives_;
      } else if (plan_.steps[s].stream > 0) {
        best = compute_ + plan_.steps[s].stream - 1;
      } else {
        for (std::size_t stream = 1; stream < compute_; ++stream) {
          if (start_on(stream) < start_on(best)) best = stream;
        }
      }
      plan_.steps[s].stream = static_cast<std::uint8_t>(best);
      done[s] = free_at[best] = start_on(best) + plan_.steps[s].seconds;
    }
    plan_.predicted_seconds = *std::max_element(free_at.begin(), free_at.end());
  }

  Status pack_again() {
    pack::Problem problem;
    problem.clocks.streams = static_cast<int>(streams_);
    std::vector<bool> is_source(plan_.buffers.size(), false);
    for (const ValueSlot& source : plan_.sources) is_source[source.slot.buffer.index()] = true;
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) add_buffer(problem, b, is_source[b]);
    // What streams can have in use at once is a bound that every reader of the plan can confirm
    // (check_claims.h); what the packer proves beyond it (by search, or because groups lie side by
    // side, or nothing may be shared) is not.
    std::vector<char> counted;
    for (std::size_t b = 0; b < problem.size(); ++b)
      counted.push_back(pack::ever_alive(problem, BufferId(b)));
    const auto antichain = pack::heaviest_antichain(problem, counted);
    problem.contiguous = plan_.contiguous;
    agree_on_ends(problem);
    pack::PackOptions how;
    how.goal = pack::Goal::kMinimize;
    how.deadline_seconds = options_.pack_seconds;
    how.deterministic = true;
    PLIMSOLL_TRY(const pack::Packing packing, pack::pack(problem, how));
    PLIMSOLL_CHECK(packing.offsets.size() == plan_.buffers.size(),
                   "the packer placed {} of {} buffers", packing.offsets.size(),
                   plan_.buffers.size());
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b)
      plan_.buffers[b].offset = packing.offsets[b];
    plan_.arenas.front().bytes = packing.height();
    plan_.proof.lower_bound = std::max(
        std::min(packing.lower_bound, Bytes(antichain && options_.sharing ? antichain->bytes : 0)),
        plan_.proof.load);
    plan_.proof.optimal = plan_.arena_bytes() == plan_.proof.lower_bound;
    return {};
  }

  void add_buffer(pack::Problem& problem, std::size_t b, bool is_source) const {
    const PlanBuffer& buffer = plan_.buffers[b];
    pack::Buffer item;
    item.lifetime = {buffer.lifetime.begin.value, buffer.lifetime.end.value};
    item.size = buffer.bytes;
    item.alignment = plan_.alignment.value;
    problem.buffers.push_back(item);
    const bool stays = !options_.sharing ||
                       buffer.lifetime.end.value >= static_cast<std::int32_t>(plan_.steps.size());
    if (options_.two_ended)
      problem.ends.push_back(is_source && stays ? pack::ArenaEnd::kFront : pack::ArenaEnd::kBack);
    const StreamCounts ready = is_source || !options_.sharing || touched_[b].empty()
                                   ? StreamCounts(streams_, 0)
                                   : known_to_all(touched_[b]);
    StreamCounts released = ready;
    for (const std::size_t s : touched_[b]) {
      std::int64_t& own = released[plan_.steps[s].stream];
      own = std::max(own, known_.position[s]);
    }
    for (std::size_t k = 0; k < streams_; ++k) {
      if (stays) released[k] = known_.count[k] + 1;
      if (touched_[b].empty()) released[k] = std::max<std::int64_t>(released[k], 1);
    }
    problem.clocks.ready.insert(problem.clocks.ready.end(), ready.begin(), ready.end());
    problem.clocks.released.insert(problem.clocks.released.end(), released.begin(), released.end());
  }

  // Where parts of a buffer have writers of their own, none of them need be the first.
  StreamCounts known_to_all(const std::vector<std::size_t>& steps) const {
    StreamCounts out = known_.known[steps.front()];
    for (const std::size_t s : steps) {
      for (std::size_t k = 0; k < streams_; ++k) out[k] = std::min(out[k], known_.known[s][k]);
    }
    return out;
  }

  Plan plan_;
  const StreamOptions& options_;
  std::size_t compute_;      // streams
  std::size_t collectives_;  // their stream
  std::size_t streams_;      // with those of copies and collectives
  bool keep_places_;
  std::vector<std::vector<std::size_t>> before_;   // by step
  std::vector<std::vector<std::size_t>> touched_;  // by buffer: the steps that read or write it
  KnownSteps known_;
};

}  // namespace

Status spread_over_streams(Plan& plan, const StreamOptions& options) {
  if (options.streams < 1 || options.streams > kMostStreams) {
    return fail(ErrorCode::kUsage, "{} streams: expects 1 to {}", options.streams, kMostStreams);
  }
  if (plan.steps.empty() || (options.streams == 1 && !has_collectives(plan))) return {};
  const bool swaps = plan.arenas.size() > 1;
  if (swaps && has_collectives(plan) && options.streams > kMostStreams - 1)
    return fail(ErrorCode::kUsage, "{} streams: expects 1 to {} where ranks talk and values swap",
                options.streams, kMostStreams - 1);
  const bool bounded = plan.budget.value > 0;
  std::optional<Plan> best;
  for (const bool keep_places : {false, true}) {
    if (keep_places ? !bounded && !swaps : swaps) continue;
    PLIMSOLL_TRY(Plan next, Spreader(plan, options, keep_places).run());
    if (bounded && next.arena_bytes() > plan.budget) continue;
    if (!best || next.predicted_seconds < best->predicted_seconds) best = std::move(next);
  }
  PLIMSOLL_CHECK(best.has_value(), "the plan was above its budget before it was spread");
  plan = *std::move(best);
  return {};
}

double bound_on_streams(const Plan& plan, int streams, double on_one) {
  double collectives = 0;
  for (const PlanStep& step : plan.steps)
    if (is_collective(plan, step)) collectives += step.seconds;
  return std::max((on_one - collectives) / streams, collectives);
}

}  // namespace plimsoll::plan
