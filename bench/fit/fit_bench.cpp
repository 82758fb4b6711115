// Prints the bars of budget fitting: overhead against the proven optimum, and time to the first
// plan.
//
//   fit_bench [seconds per instance] [filter]
//
// Optima are those of the Checkmate model for the given order, proven by integer programming; with
// the order free, a plan may be below them.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/testing/layered_network.h"
#include "plimsoll/schedule/testing/training_graphs.h"
#include "plimsoll/schedule/verify_schedule.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::schedule;

struct Row {
  std::string name;
  Workload workload;
  double budget;   // bytes, or a fraction of the no-recompute peak when at most 1
  double optimum;  // percent; negative when unknown
};

std::vector<Row> small_rows() {
  return {
      {"chain15", random_chain(15), 120, 7.30},
      {"chain15", random_chain(15), 90, 13.69},
      {"chain25", random_chain(25), 200, 3.16},
      {"chain25", random_chain(25), 140, 9.93},
      {"unit20", unit_chain(20), 10, 18.64},
      {"unit20", unit_chain(20), 7, 23.73},
      {"resnet3", small_resnet(3), 250, 2.34},
      {"resnet3", small_resnet(3), 200, 7.03},
      {"resnet4", small_resnet(4), 350, 2.96},
      {"resnet4", small_resnet(4), 260, 9.47},
      {"unet2", small_unet(2), 1700, 1.45},
      {"unet2", small_unet(2), 1400, 4.73},
      {"unet3", small_unet(3), 1900, 0.77},
      {"unet3", small_unet(3), 1500, 3.83},
      {"vgg", small_vgg(), 1800, 0.61},
      {"vgg", small_vgg(), 1400, 1.61},
      {"transformer1", transformer(1), 180, 8.26},
      {"transformer1", transformer(1), 150, 20.66},
      {"transformer2", transformer(2), 340, 2.56},
      {"transformer2", transformer(2), 260, 7.25},
      {"transformer5", transformer(5), 0.5, 6.52},
      {"transformer8", transformer(8), 0.47, 6.94},
  };
}

std::vector<Row> large_rows() {
  return {
      {"layered100", random_layered(100, 236, 1), 0.9, -1},
      {"layered100", random_layered(100, 236, 1), 0.8, -1},
      {"network250", layered_network({250, 11, 1, 1}), 0.9, -1},
      {"network250", layered_network({250, 11, 1, 1}), 0.8, -1},
      {"network500", layered_network({500, 17, 1, 1}), 0.9, -1},
      {"network500", layered_network({500, 17, 1, 1}), 0.8, -1},
      {"network1000", layered_network({1000, 22, 1, 1}), 0.9, -1},
      {"network1000", layered_network({1000, 22, 1, 1}), 0.8, -1},
      {"dense500", layered_network({500, 17, 3, 1}), 0.9, -1},
      {"dense500", layered_network({500, 17, 3, 1}), 0.85, -1},
      {"unit500", unit_chain(500), 0.1, 30.09},
      {"transformer100", transformer(100), 0.6, 4.01},
      {"transformer100", transformer(100), 0.4, 8.92},
      {"transformer100", transformer(100), 0.25, 15.10},
      {"resnet333", small_resnet(333), 0.5, 5.92},
      {"resnet333", small_resnet(333), 0.25, 15.80},
      {"resnet333", small_resnet(333), 0.1, 24.18},
      {"transformer1600", transformer(1600), 0.4, 9.11},
      {"transformer1600", transformer(1600), 0.25, 15.25},
  };
}

bool run(const Row& row, double seconds, OrderChoice order) {
  const Schedule kept = keep_all(row.workload);
  FitOptions options;
  options.budget =
      Bytes(row.budget <= 1
                ? static_cast<std::int64_t>(row.budget * static_cast<double>(kept.peak_bytes.value))
                : static_cast<std::int64_t>(row.budget));
  options.order = order;
  options.deadline_seconds = seconds;
  options.threads = 2;
  double first = -1, first_overhead = 0, last = 0;
  options.on_better = [&](const FitProgress& progress) {
    last = progress.elapsed;
    if (first >= 0) return;
    first = progress.elapsed;
    first_overhead = 100 * (progress.seconds / kept.seconds - 1);
  };
  const auto fitted = fit(row.workload, options);
  if (!fitted) {
    std::printf("%-16s %s\n", row.name.c_str(), fitted.error().message.c_str());
    return false;
  }
  const auto verdict =
      verify_schedule(row.workload, fitted->schedule, options.budget, options.copies);
  std::printf(
      "%-16s n=%-6zu budget %-6lld of %-6lld known %6.2f%%  ours %6.2f%%  bound %6.2f%%  first "
      "%6.2f%% in %.4fs, best at %.1fs %s\n",
      row.name.c_str(), row.workload.tasks.size(), static_cast<long long>(options.budget.value),
      static_cast<long long>(kept.peak_bytes.value), row.optimum, 100 * fitted->overhead(),
      100 * fitted->bound_overhead(), first_overhead, first, last,
      verdict ? "" : verdict.error().message.c_str());
  std::fflush(stdout);
  return verdict.has_value();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const std::string filter = argc > 2 ? argv[2] : "";
  bool good = true;
  for (const auto order : {OrderChoice::kGiven, OrderChoice::kSearch}) {
    std::printf(order == OrderChoice::kGiven ? "-- the given order\n"
                                             : "-- the order may change\n");
    for (const auto& rows : {small_rows(), large_rows()}) {
      for (const Row& row : rows) {
        if (row.name.find(filter) != std::string::npos) good = run(row, seconds, order) && good;
      }
    }
  }
  return good ? 0 : 1;
}
