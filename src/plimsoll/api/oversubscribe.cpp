#include "plimsoll/api/oversubscribe.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/run_device.h"
#include "plimsoll/api/run_model.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/comma_list.h"
#include "plimsoll/plan/fit/workloads.h"
#include "plimsoll/profile/measure_bus.h"
#include "plimsoll/runtime/paging/uvm_model.h"
#include "plimsoll/schedule/bounds/state_copies.h"

namespace plimsoll::api {
namespace {

using report::Oversubscription;
using report::OversubscriptionPoint;

constexpr std::string_view kDeadSuffix = "+dead";
constexpr std::string_view kUvm = "uvm";
constexpr std::string_view kPlannedPolicy = "planned";

Result<std::vector<double>> parse_factors(const std::string& text) {
  std::vector<double> out;
  for (const std::string_view word : comma_list(text)) {
    double factor = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), factor);
    if (read.ec != std::errc() || read.ptr != word.data() + word.size() || !(factor > 0.01) ||
        factor > 1000)
      return fail(ErrorCode::kUsage, "--factors '{}': expects numbers like 1,1.5,2", word);
    out.push_back(factor);
  }
  if (out.empty()) return fail(ErrorCode::kUsage, "--factors: expects numbers like 1,1.5,2");
  return out;
}

struct Policy {
  std::string name;
  std::optional<runtime::PagingOptions> paging;  // absent: a plan, or the model
  bool model = false;
};

Result<std::vector<Policy>> parse_policies(const OversubscribeRequest& request) {
  std::vector<Policy> out;
  for (const std::string_view word : comma_list(request.policies)) {
    Policy policy{std::string(word), {}, word == kUvm};
    if (!policy.model && word != kPlannedPolicy) {
      const bool dead = word.ends_with(kDeadSuffix);
      const auto known = runtime::paging_policy_from(
          dead ? word.substr(0, word.size() - kDeadSuffix.size()) : word);
      if (!known)
        return fail(ErrorCode::kUsage,
                    "--policies '{}': expects a comma list of uvm, demand, prefetch, pre-evict, "
                    "belady, planned; demand+dead and the like forget nothing",
                    word);
      policy.paging.emplace();
      policy.paging->policy = *known;
      policy.paging->forget_dead = !dead;
      policy.paging->prefetch = request.prefetch;
    }
    out.push_back(std::move(policy));
  }
  if (out.empty()) return fail(ErrorCode::kUsage, "--policies: expects at least one");
  return out;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

class Sweep {
 public:
  Sweep(const OversubscribeRequest& request, Pipeline& p, Oversubscription& out)
      : request_(request), p_(p), out_(out) {}

  Status baselines() {
    tell("without a limit");
    p_.on_demand = true;
    p_.paging.reset();
    PLIMSOLL_TRY(const RunReport free, run());
    out_.free_seconds = typical_seconds(free);
    losses_ = free.losses;
    tell("the default plan");
    p_.on_demand = false;
    PLIMSOLL_TRY(p_.planning, plan_options(request_.planning));
    p_.planning.budget.clear();
    PLIMSOLL_TRY(const RunReport planned, run());
    out_.arena = *planned.planned_peak;
    out_.plan_seconds = typical_seconds(planned);
    PLIMSOLL_TRY(rates_, profile::measure_bus(p_.backend->device()));
    out_.out_rate = rates_.out_bytes_per_second;
    out_.in_rate = rates_.in_bytes_per_second;
    out_.both_rate = rates_.both_bytes_per_second;
    out_.device = planned.device;
    return same_losses(planned, "the default plan");
  }

  Result<OversubscriptionPoint> point(const Policy& policy, double factor) {
    OversubscriptionPoint out;
    out.policy = policy.name;
    out.factor = factor;
    out.model = policy.model;
    out.capacity = Bytes(std::llround(static_cast<double>(out_.arena.value) / factor));
    tell(fmt::format("{} in {}", policy.name, human(out.capacity)));
    const Status status = policy.model    ? model(out)
                          : policy.paging ? paged(*policy.paging, out)
                                          : planned(out);
    if (status) return out;
    if (status.error().code != ErrorCode::kDoesNotFit &&
        status.error().code != ErrorCode::kNoAnswer)
      return forward(status);
    out.refused = status.error().message;
    return out;
  }

 private:
  void tell(const std::string& what) {
    if (request_.on_point) request_.on_point(what);
  }

  Result<RunReport> run() {
    p_.done = Stage::kPrepared;
    PLIMSOLL_RETURN_IF_ERROR(advance(p_, Stage::kRun));
    return std::move(p_.report);
  }

  Status same_losses(const RunReport& report, const std::string& what) const {
    if (same_bits(report.losses, losses_)) return {};
    return fail(ErrorCode::kInternal, "{}: its losses differ from those without a limit", what);
  }

  void judge(OversubscriptionPoint& out, double baseline) const {
    out.slowdown = out.seconds / baseline;
    out.bound = std::max(1.0, rates_.seconds(out.out, out.in) / baseline);
    out.stall_seconds = std::max(0.0, out.seconds - baseline);
  }

  Status paged(runtime::PagingOptions how, OversubscriptionPoint& out) {
    p_.on_demand = true;
    how.capacity = out.capacity;
    p_.paging = how;
    PLIMSOLL_TRY(const RunReport report, run());
    PLIMSOLL_RETURN_IF_ERROR(same_losses(report, out.policy));
    const runtime::PagingCounts& step = report.paging->step;
    out.seconds = typical_seconds(report);
    out.in = step.in;
    out.out = step.out;
    out.faults = step.faults;
    out.stalls = step.stalls;
    out.evictions = step.evictions;
    out.dead_evictions = step.dead_evictions;
    judge(out, out_.free_seconds);
    const double forced = rates_.seconds(report.paging->forced_out, Bytes(0)) +
                          rates_.seconds(Bytes(0), report.paging->forced_in);
    out.bound = std::max(out.bound, forced / out_.free_seconds);
    return {};
  }

  Status planned(OversubscriptionPoint& out) {
    p_.on_demand = false;
    p_.paging.reset();
    PLIMSOLL_TRY(p_.planning, plan_options(request_.planning));
    p_.planning.budget = std::to_string(out.capacity.value);
    PLIMSOLL_TRY(const PlannedGraph plan, plan_model(p_, p_.planning));
    out.in = plan.summary.counts.copied_in;
    out.out = plan.summary.counts.copied_out;
    out.recomputed = plan.summary.counts.recomputed;
    out.encoded = plan.summary.counts.encoded;
    p_.planned = plan;
    p_.done = Stage::kPlanned;
    PLIMSOLL_RETURN_IF_ERROR(advance(p_, Stage::kRun));
    PLIMSOLL_RETURN_IF_ERROR(same_losses(p_.report, out.policy));
    out.seconds = typical_seconds(p_.report);
    out.predicted_seconds = p_.report.predicted_seconds;
    judge(out, out_.plan_seconds);
    // Of any plan, and not of the bytes that this one moves.
    PLIMSOLL_TRY(const schedule::GraphWorkload tasks,
                 plan::workload_of(plan.plan.graph, with_costs(p_, p_.planning), {}));
    const Bytes state = schedule::state_copies(tasks.workload, out.capacity);
    out.bound = std::max(1.0, rates_.seconds(state, state) / out_.plan_seconds);
    return {};
  }

  // The launches of a pool that forgets nothing, as one step of it made them.
  Status model(OversubscriptionPoint& out) {
    if (launches_.empty()) {
      p_.on_demand = true;
      p_.paging.emplace();
      p_.paging->capacity = Bytes(std::int64_t{1} << 46);
      p_.paging->forget_dead = false;
      const int steps = std::exchange(p_.running.steps, 1);
      Result<RunReport> report = run();
      p_.running.steps = steps;
      if (!report) return forward(report);
      launches_ = std::move(report->paging->launches);
    }
    runtime::UvmModelOptions how;
    how.capacity = out.capacity;
    how.in_bytes_per_second = rates_.in_bytes_per_second;
    how.out_bytes_per_second = rates_.out_bytes_per_second;
    how.compute_seconds = out_.free_seconds;
    const runtime::UvmModelResult result = runtime::model_managed_memory(launches_, how);
    out.seconds = result.seconds;
    out.in = result.in;
    out.out = result.out;
    out.faults = result.faults;
    judge(out, out_.free_seconds);
    return {};
  }

  const OversubscribeRequest& request_;
  Pipeline& p_;
  Oversubscription& out_;
  profile::BusRates rates_;
  std::vector<double> losses_;
  std::vector<runtime::VirtualLaunch> launches_;
};

}  // namespace

Result<Oversubscription> oversubscribe(const OversubscribeRequest& request) {
  PLIMSOLL_TRY(const std::vector<double> factors, parse_factors(request.factors));
  PLIMSOLL_TRY(const std::vector<Policy> policies, parse_policies(request));
  if (!request.planning.budget.empty())
    return fail(ErrorCode::kUsage, "--budget: --factors say how much memory there is");
  if (request.planning.tune > 0 || !request.planning.lossy.empty())
    return fail(ErrorCode::kUsage, "--tune, --lossy: every point is planned once, without loss");
  PLIMSOLL_RETURN_IF_ERROR(require_runnable(request.planning.device));
  OversubscribeRequest how = request;
  if (how.planning.techniques.empty()) how.planning.techniques = "all";
  Pipeline p;
  p.request = how.model;
  p.device = how.planning.device;
  p.backend = how.backend;
  p.on_measuring = how.on_measuring;
  p.measure = std::any_of(policies.begin(), policies.end(),
                          [](const Policy& policy) { return policy.name == kPlannedPolicy; });
  p.running.steps = how.steps;
  p.running.threads = how.model.threads;
  p.running.seed = how.model.seed;
  p.running.swap_file = how.planning.swap_file;
  p.running.backing = std::make_shared<runtime::BackingStore>();
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPrepared));
  Oversubscription out;
  out.title = how.model.model;
  Sweep sweep(how, p, out);
  PLIMSOLL_RETURN_IF_ERROR(sweep.baselines());
  for (const Policy& policy : policies) {
    for (const double factor : factors) {
      PLIMSOLL_TRY(OversubscriptionPoint point, sweep.point(policy, factor));
      out.points.push_back(std::move(point));
    }
  }
  return out;
}

}  // namespace plimsoll::api
