// What each search of budget fitting gains: the overhead of the plan found with all of them, and
// with one switched off.
//
//   ablation_bench [times] [filter]
//
// Work is counted, `times` what one rung of a deterministic plan gets (default 1), on one thread,
// so the table repeats on every machine; each figure is the mean over three seeds. A switch gives
// its work to nobody else. "-" stands where some seed found no plan. The table of docs/searching.md
// is this program's output.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/autodiff/training.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/fuse_scatter_add.h"
#include "plimsoll/rewrite/simplify.h"
#include "plimsoll/schedule/device_profile.h"
#include "plimsoll/schedule/search/schedule_optimizer.h"
#include "plimsoll/schedule/testing/training_graphs.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::schedule {
namespace {

constexpr Remedies kRecompute{};
constexpr Remedies kSwapToo{.swap = true};

struct Row {
  std::string name;
  Workload workload;
  double budget;  // a fraction of the no-recompute peak
  Remedies remedies;
  CopyRates copies{};
};

struct Switch {
  const char* name;
  bool SearchSwitches::*member;
};
constexpr std::array<Switch, 7> kSwitches{{{"orders", &SearchSwitches::orders},
                                           {"segments", &SearchSwitches::segments},
                                           {"restarts", &SearchSwitches::restarts},
                                           {"priced", &SearchSwitches::priced_intervals},
                                           {"repaired", &SearchSwitches::repaired_intervals},
                                           {"moves", &SearchSwitches::operator_moves},
                                           {"gaps", &SearchSwitches::gaps}}};

// A training step of a model of the zoo, with the costs of the shipped profile.
Result<Row> zoo_row(const std::string& model, const model::ModelOptions& sizes, double budget,
                    Remedies remedies) {
  PLIMSOLL_TRY(ir::Graph graph, model::build_model(model, sizes));
  PLIMSOLL_TRY(graph, rewrite::simplify(graph, {.trains = true}));
  PLIMSOLL_TRY(graph, autodiff::make_training_graph(graph, {}));
  PLIMSOLL_TRY(graph, rewrite::fuse_scatter_add(graph));
  const DeviceProfile& profile = *shipped_profile("cpu");
  GraphWorkloadOptions how;
  how.seconds = [&](const ir::Graph& in, const ir::Node& node) {
    const ops::Cost cost = ops::cost_of(in, node);
    const ir::TensorType& type = in.value(node.outputs.front()).type;
    return cost_of(profile, ops::signature(in, node), ir::name(type.dtype), cost.operations,
                   cost.bytes())
        .seconds;
  };
  PLIMSOLL_TRY(GraphWorkload mapped, make_graph_workload(graph, how));
  return Row{model, std::move(mapped.workload), budget, remedies, profile.copies};
}

Result<std::vector<Row>> rows() {
  std::vector<Row> out{
      {"chain25", random_chain(25), 0.5, kRecompute},
      {"unet3", small_unet(3), 0.5, kRecompute},
      {"transformer8", transformer(8), 0.47, kRecompute},
      {"layered100", random_layered(100, 236, 1), 0.8, kRecompute},
      {"unit500", unit_chain(500), 0.1, kRecompute},
  };
  model::ModelOptions gpt2;
  gpt2.layers = 2;
  gpt2.width = 256;
  gpt2.vocab = 512;
  gpt2.seq = 128;
  gpt2.batch = 16;
  model::ModelOptions resnet;
  resnet.batch = 32;
  for (const Remedies& remedies : {kRecompute, kSwapToo}) {
    PLIMSOLL_TRY(Row first, zoo_row("gpt2", gpt2, 0.5, remedies));
    PLIMSOLL_TRY(Row second, zoo_row("resnet18", resnet, 0.7, remedies));
    out.push_back(std::move(first));
    out.push_back(std::move(second));
  }
  return out;
}

// Percent over the no-recompute plan, the mean over the seeds.
std::optional<double> overhead(const Row& row, const SearchSwitches& on, double times) {
  FitOptions options;
  options.remedies = row.remedies;
  options.copies = row.copies;
  options.deterministic = true;
  options.search.on = on;
  ScheduleOptimizer optimizer(row.workload, options);
  const Schedule& kept = optimizer.keep_all().schedule;
  Effort effort = counted_effort(optimizer.problem(), options.search);
  effort.restarts = std::llround(times * static_cast<double>(effort.restarts));
  effort.moves = std::llround(times * static_cast<double>(effort.moves));
  const Bytes budget(std::llround(row.budget * static_cast<double>(kept.peak_bytes.value)));
  double sum = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto found = optimizer.search(budget, effort, seed);
    if (!found) return std::nullopt;
    sum += 100 * (found->schedule.seconds / kept.seconds - 1);
  }
  return sum / 3;
}

Status print(double times, const std::string& filter) {
  std::printf("| graph | tasks | budget | techniques | all on |");
  for (const Switch& one : kSwitches) std::printf(" no %s |", one.name);
  std::printf("\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  PLIMSOLL_TRY(const std::vector<Row> all, rows());
  for (const Row& row : all) {
    if (row.name.find(filter) == std::string::npos) continue;
    const auto cell = [&](const SearchSwitches& on) {
      const std::optional<double> percent = overhead(row, on, times);
      percent ? std::printf(" %.2f |", *percent) : std::printf(" - |");
      std::fflush(stdout);
    };
    std::printf("| %s | %zu | %.0f %% | %s |", row.name.c_str(), row.workload.tasks.size(),
                100 * row.budget, row.remedies.swap ? "recompute, swap" : "recompute");
    cell({});
    for (const Switch& one : kSwitches) {
      SearchSwitches on;
      on.*one.member = false;
      const bool used = one.member != &SearchSwitches::gaps || row.remedies.swap;
      used ? cell(on) : static_cast<void>(std::printf(" |"));
    }
    std::printf("\n");
  }
  return {};
}

}  // namespace
}  // namespace plimsoll::schedule

int main(int argc, char** argv) {
  const double times = argc > 1 ? std::atof(argv[1]) : 1;
  const plimsoll::Status status = plimsoll::schedule::print(times, argc > 2 ? argv[2] : "");
  if (!status) std::fprintf(stderr, "ablation_bench: %s\n", status.error().message.c_str());
  return status ? 0 : static_cast<int>(status.error().code);
}
