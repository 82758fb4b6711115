// The bars of running within a budget, on the machine that runs this:
//
//   run_bench [rounds] [model]
//
// Real runs: a step within 50 % and 35 % of the no-recompute plan, against a step of that plan, and
// against what was predicted. Plans are run in turn, `rounds` times (default
// 3), two steps each; the first step of each pays for pages and is not counted.
//
// Encodings: what waits for the backward pass, against the same activations in fp32, and what
// compressing all of them costs, with weights that make every ReLU half zero. A step with and a
// step without encodings take turns in one arena, on the same pages; the first of each is not
// counted, and the time is the median of `rounds` such pairs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/random.h"

namespace plimsoll::api {
namespace {

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return (numbers[numbers.size() / 2] + numbers[(numbers.size() - 1) / 2]) / 2;
}

struct Candidate {
  std::string name;
  plan::Plan plan;
  double bar = 0;  // most that it may be slower; 0: none
  std::vector<double> seconds{};
};

Status run_in_turn(std::vector<Candidate>& candidates, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (Candidate& candidate : candidates) {
      RunOptions how;
      how.steps = 2;
      PLIMSOLL_TRY(const RunReport report, run_plan(candidate.plan, how));
      if (report.peak > candidate.plan.arena_bytes())
        return fail(ErrorCode::kInternal, "{}: over its plan", candidate.name);
      candidate.seconds.push_back(report.step_seconds.back());
    }
  }
  return {};
}

// Weights with which every ReLU is half zero, through max pools and sums with a shortcut too: a
// bias of plus or minus 2.5, the same for a channel in every layer of that width, outweighs what
// the layer adds to it (a batch norm's deviation is 1; weights are made small enough that a
// convolution's is about the same).
Status make_half_zero(runtime::Executor& executor) {
  constexpr float kBias = 2.5F;
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind != ir::ValueKind::kWeight) continue;
    if (!value.type.layout.is_row_major()) return bad_input("{}: not row-major", value.name);
    PLIMSOLL_TRY(std::vector<std::byte> bytes, executor.read(ValueId(v)));
    const std::span numbers{reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
    Random random(numbers.size());
    if (value.type.shape.rank() > 1) {
      const double inputs =
          static_cast<double>(numbers.size()) / static_cast<double>(value.type.shape[0]);
      const double bound = 0.5 * std::sqrt(3 / inputs);
      for (float& number : numbers) number = static_cast<float>(bound * (2 * random.uniform() - 1));
    } else if (value.name.ends_with(".bias")) {
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i % 2 == 0 ? kBias : -kBias;
      random.shuffle(numbers);
    }
    PLIMSOLL_RETURN_IF_ERROR(executor.write(ValueId(v), bytes));
  }
  return {};
}

void print(const std::vector<Candidate>& candidates) {
  const double base = median(candidates.front().seconds);
  std::printf("  %-12s %12s %10s %9s %8s %10s %8s\n", "budget", "arena", "measured", "slower",
              "bar", "predicted", "off");
  for (const Candidate& candidate : candidates) {
    const double measured = median(candidate.seconds);
    const double predicted = candidate.plan.predicted_seconds;
    std::printf("  %-12s %12s %8.0fms %8.1f%% %7.0f%% %8.0fms %+7.1f%%\n", candidate.name.c_str(),
                human(candidate.plan.arena_bytes()).c_str(), 1e3 * measured,
                100 * (measured / base - 1), 100 * candidate.bar, 1e3 * predicted,
                100 * (measured / predicted - 1));
  }
}

Status run_within_budgets(const ModelRequest& request, const schedule::Remedies& remedies,
                          int rounds) {
  PLIMSOLL_TRY(Pipeline prepared, prepare_model(request, std::string(kMeasured)));
  std::vector<Candidate> candidates;
  for (const auto& [budget, bar] :
       std::vector<std::pair<std::string, double>>{{"", 0}, {"50%", 0.15}, {"35%", 0.35}}) {
    PlanOptions options;
    options.budget = budget;
    options.remedies = remedies;
    options.deadline_seconds = 10;
    auto planned = plan_model(prepared, options);
    if (planned)
      candidates.push_back({budget.empty() ? "no budget" : budget, std::move(planned->plan), bar});
    if (!planned) std::printf("  %s: %s\n", budget.c_str(), planned.error().message.c_str());
  }
  PLIMSOLL_RETURN_IF_ERROR(run_in_turn(candidates, rounds));
  print(candidates);
  return {};
}

Status run_encoded(const std::string& model, std::int64_t batch, double bar, int rounds) {
  ModelRequest request;
  request.model = model;
  request.sizes.batch = batch;
  PLIMSOLL_TRY(Pipeline prepared, prepare_model(request, "cpu"));
  std::vector<plan::Plan> plans;
  for (const char* strategy : {"none", "encode"}) {
    PlanOptions options;
    options.strategy = strategy;
    options.compare = false;
    PLIMSOLL_TRY(PlannedGraph planned, plan_model(prepared, options));
    plans.push_back(std::move(planned.plan));
  }
  const plan::Held held = plan::held_for_backward(plans.back());
  RunOptions how;
  how.steps = 2 * (rounds + 1);
  how.on_start = make_half_zero;
  PLIMSOLL_TRY(const RunReport report, run_plan_set(std::move(plans), how));
  std::vector<double> slower;
  for (std::size_t step = 2; step < report.step_seconds.size(); step += 2)
    slower.push_back(report.step_seconds[step + 1] / report.step_seconds[step] - 1);
  const auto [least, most] = std::minmax_element(slower.begin(), slower.end());
  std::printf(
      "  %-10s batch %-3lld %9s held, %9s in fp32: %.2f times smaller (bar %.2f), %s did not fit; "
      "%+.1f %% time (bar 5 %%; pairs %+.1f to %+.1f %%)\n",
      model.c_str(), static_cast<long long>(batch), human(held.bytes).c_str(),
      human(held.as_fp32).c_str(),
      static_cast<double>(held.as_fp32.value) / static_cast<double>(held.bytes.value), bar,
      human(report.overflow).c_str(), 100 * median(slower), 100 * *least, 100 * *most);
  return {};
}

Status run_all(int rounds, const std::string& only) {
  const auto wanted = [&](const std::string& name) { return only.empty() || only == name; };
  if (wanted("resnet50")) {
    ModelRequest request;
    request.model = "resnet50";
    request.sizes.batch = 16;
    std::printf("resnet50, batch 16, recompute and encode\n");
    PLIMSOLL_RETURN_IF_ERROR(
        run_within_budgets(request, {.recompute = true, .swap = false, .encode = true}, rounds));
  }
  if (wanted("gpt2")) {
    ModelRequest request;
    request.model = "gpt2";
    request.sizes.batch = 2;
    request.sizes.seq = 256;
    request.optimizer = "adam";
    std::printf("gpt2, 2 x 256, adam, all remedies\n");
    PLIMSOLL_RETURN_IF_ERROR(
        run_within_budgets(request, {.recompute = true, .swap = true, .encode = true}, rounds));
  }
  if (!wanted("encode")) return {};
  std::printf("lossless encodings\n");
  PLIMSOLL_RETURN_IF_ERROR(run_encoded("vgg16", 4, 2.2, rounds));
  PLIMSOLL_RETURN_IF_ERROR(run_encoded("alexnet", 32, 2.2, rounds));
  PLIMSOLL_RETURN_IF_ERROR(run_encoded("resnet50", 8, 1.25, rounds));
  return run_encoded("resnet101", 4, 1.25, rounds);
}

}  // namespace
}  // namespace plimsoll::api

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 3;
  const plimsoll::Status status = plimsoll::api::run_all(rounds, argc > 2 ? argv[2] : "");
  if (!status) std::fprintf(stderr, "run_bench: %s\n", status.error().message.c_str());
  return status ? 0 : static_cast<int>(status.error().code);
}
