#include "plimsoll/profile/tune.h"

#include <algorithm>
#include <map>

#include "plimsoll/ops/kernel_facts.h"

namespace plimsoll::profile {
namespace {

// Bytes and seconds of one kind of move, for a rate.
struct Moved {
  double bytes = 0;
  double seconds = 0;

  void add(Bytes more, double took) {
    bytes += static_cast<double>(more.value);
    seconds += took;
  }
  void set(double& rate) const {
    if (bytes > 0 && seconds > 0) rate = bytes / seconds;
  }
};

// Steps and sum keep their proportions: what was measured is the whole.
void scale_to(double seconds, plan::Plan& plan) {
  const double factor = plan.predicted_seconds > 0 ? seconds / plan.predicted_seconds : 1;
  for (plan::PlanStep& step : plan.steps) step.seconds *= factor;
  plan.predicted_seconds *= factor;
}

}  // namespace

void learn(const plan::Plan& plan, const std::vector<double>& step_seconds, bool swaps_to_file,
           schedule::DeviceProfile& profile) {
  std::map<std::string, std::pair<double, int>> by_signature;
  std::map<plan::StepKind, Moved> moved;
  std::map<std::string, std::pair<Moved, Moved>> coded;  // by codec: encoded, decoded
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::PlanStep& step = plan.steps[s];
    if (step.node.valid()) {
      auto& [seconds, runs] = by_signature[ops::signature(plan.graph, plan.graph.node(step.node))];
      seconds += step_seconds[s];
      ++runs;
    } else if (step.value.valid()) {
      const Bytes bytes = ir::bytes_of(plan.graph.value(step.value).type);
      moved[step.kind].add(bytes, step_seconds[s]);
      if (step.kind == plan::StepKind::kEncode) coded[step.codec].first.add(bytes, step_seconds[s]);
      if (step.kind == plan::StepKind::kDecode)
        coded[step.codec].second.add(bytes, step_seconds[s]);
    }
  }
  for (const auto& [signature, sum] : by_signature)
    profile.measured[signature] = std::max(sum.first / sum.second, 1e-9);
  schedule::CopyRates& copies = swaps_to_file ? profile.disk : profile.copies;
  moved[plan::StepKind::kCopyOut].set(copies.out_bytes_per_second);
  moved[plan::StepKind::kCopyIn].set(copies.in_bytes_per_second);
  for (const auto& [form, sums] : coded) {
    schedule::CodecRate rate = profile.codecs.of(form);
    sums.first.set(rate.encode_bytes_per_second);
    sums.second.set(rate.decode_bytes_per_second);
    profile.codecs.forms[form] = rate;
  }
}

Result<Tuned> tune(const TuneOptions& options, schedule::DeviceProfile& profile) {
  Tuned out;
  double fastest = 0;
  for (int round = 0; round < options.rounds; ++round) {
    PLIMSOLL_TRY(plan::PlannedGraph planned, options.plan(round));
    PLIMSOLL_TRY(const TimedStep step, options.run(planned.plan));
    const TuneRound seen{planned.plan.predicted_seconds, step.seconds};
    learn(planned.plan, step.by_plan_step, options.swaps_to_file, profile);
    out.rounds.push_back(seen);
    if (options.on_round) options.on_round(seen);
    if (round == 0 || seen.measured_seconds < fastest) {
      fastest = seen.measured_seconds;
      out.planned = std::move(planned);
    }
    if (options.stop != nullptr && options.stop->load()) break;
  }
  scale_to(fastest, out.planned.plan);
  return out;
}

}  // namespace plimsoll::profile
