// Fits generated graphs on which searches fail, and compares with reference plans.
//
//   hard_bench [seconds a plan] [family] [first seed] [last seed] [threads]
//
// Families, all of 1,000 tasks:
//   wide84, wide80    ten tasks a layer, four inputs from the last three layers (wide_layers.h), at
//                     84 % and 80 % of the no-recompute plan
//   dense90, dense85  layered networks with twice the edges of the published ones, at 90 % and 85 %
//   half              layered networks where half of all steps are over the budget
//
// bench/fit/hard_references.txt has one line for each of the best plans known: family, seed, budget
// in bytes, cost. Nothing was tuned on their seeds. They passed verify_schedule(), as everything
// here does before it is printed. Whoever finds a better one replaces the line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/search/order.h"
#include "plimsoll/schedule/testing/layered_network.h"
#include "plimsoll/schedule/testing/wide_layers.h"
#include "plimsoll/schedule/verify_schedule.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::schedule;

struct Family {
  std::string name;
  double share;  // of the no-recompute peak; 0: the median of the bytes over time
};
const std::vector<Family> kFamilies = {
    {"wide84", 0.84}, {"wide80", 0.80}, {"dense90", 0.90}, {"dense85", 0.85}, {"half", 0}};

Workload graph_of(const Family& family, std::uint64_t seed) {
  if (family.name.starts_with("wide")) return wide_layers({.seed = seed});
  return layered_network({1000, 22, family.name.starts_with("dense") ? 3.0 : 1.0, seed});
}

Bytes budget_of(const Family& family, const Workload& workload, Bytes kept) {
  if (family.share > 0)
    return Bytes(static_cast<std::int64_t>(family.share * static_cast<double>(kept.value)));
  const Problem problem(workload, Remedies{}, CopyRates{});
  std::vector<std::int64_t> bytes = bytes_over_time(problem, given_sequence(problem).order);
  std::nth_element(bytes.begin(), bytes.begin() + std::ssize(bytes) / 2, bytes.end());
  return Bytes(bytes[bytes.size() / 2]);
}

// By family, seed and budget.
std::map<std::string, double> references() {
  std::map<std::string, double> out;
  std::ifstream file("bench/fit/hard_references.txt");
  std::string family, seed, budget;
  double cost = 0;
  while (file >> family >> seed >> budget >> cost)
    out[fmt::format("{} {} {}", family, seed, budget)] = cost;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  const std::string wanted = argc > 2 ? argv[2] : "";
  const std::uint64_t first = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  const std::uint64_t last = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 2;
  const int threads = argc > 5 ? std::atoi(argv[5]) : 2;
  const std::map<std::string, double> known = references();
  bool good = true;
  for (const Family& family : kFamilies) {
    if (!wanted.empty() && !family.name.starts_with(wanted)) continue;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
      const Workload workload = graph_of(family, seed);
      const Schedule kept = keep_all(workload);
      FitOptions options;
      options.budget = budget_of(family, workload, kept.peak_bytes);
      options.deadline_seconds = seconds;
      options.threads = threads;
      const std::string key =
          family.name + " " + std::to_string(seed) + " " + std::to_string(options.budget.value);
      const auto reference = known.find(key);
      const auto fitted = fit(workload, options);
      if (!fitted) {
        std::printf("%s none: %s (all kept: %lld)\n", key.c_str(), fitted.error().message.c_str(),
                    static_cast<long long>(kept.peak_bytes.value));
        std::fflush(stdout);
        continue;
      }
      const auto verdict =
          verify_schedule(workload, fitted->schedule, options.budget, options.copies);
      good = good && verdict.has_value();
      std::printf("%s %.1f  +%.2f %%", key.c_str(), fitted->schedule.seconds,
                  100 * fitted->overhead());
      if (reference != known.end())
        std::printf("  %.3f of the reference", fitted->schedule.seconds / reference->second);
      std::printf("  %s\n", verdict ? "" : verdict.error().message.c_str());
      std::fflush(stdout);
    }
  }
  return good ? 0 : 1;
}
