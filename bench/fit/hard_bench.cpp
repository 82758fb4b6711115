// Fits generated graphs on which searches fail, and compares with reference plans.
//
//   hard_bench [seconds a plan] [family] [first seed] [last seed] [threads] [keep]
//
// Families, all of 1,000 tasks:
//   wide84, wide80    ten tasks a layer, four inputs from the last three layers (wide_layers.h), at
//                     84 % and 80 % of the no-recompute plan
//   dense90, dense85  layered networks with twice the edges of the published ones, at 90 % and 85 %
//   half              layered networks where half of all steps are over the budget
//
// References are the best plans known, one file each (bench/fit/hard_references/half-101.txt):
// family, seed, budget in bytes, cost, then the tasks in the order in which they run. They are read
// as plans, not as claims: each is linked and passes verify_schedule() before anything is compared
// with it, as every plan that is made here does. `keep` writes a plan that is better than its
// reference, or has none, in its place. Nothing was tuned on seeds from 101 on.
//
// After every family: how many seeds were planned, and the spread of their costs as parts of those
// of the references.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/search/action_list.h"
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

// One graph to fit, and the file of its reference.
struct Case {
  std::string name;  // family and seed
  Workload workload;
  Bytes budget;
  std::filesystem::path file;
};

Case case_of(const Family& family, std::uint64_t seed) {
  Case out;
  out.workload = graph_of(family, seed);
  out.budget = budget_of(family, out.workload, keep_all(out.workload).peak_bytes);
  out.name = fmt::format("{} {} {}", family.name, seed, out.budget.value);
  out.file = fmt::format("bench/fit/hard_references/{}-{}.txt", family.name, seed);
  return out;
}

// Seconds of the reference, as its plan has them; nothing where there is none.
std::optional<double> reference_of(const Case& one, bool& good) {
  std::ifstream file(one.file);
  std::string family, seed, budget;
  double cost = 0;
  if (!(file >> family >> seed >> budget >> cost)) return std::nullopt;
  const Problem problem(one.workload, Remedies{}, CopyRates{});
  ActionList list;
  for (Index task = 0; file >> task;) {
    if (task < 0 || task >= problem.tasks) return std::nullopt;
    list.actions.push_back({ActionKind::kCompute, task});
  }
  const Schedule plan = link(problem, list);
  const auto verdict = verify_schedule(one.workload, plan, one.budget, CopyRates{});
  const bool same = fmt::format("{} {} {}", family, seed, budget) == one.name;
  if (verdict && same && plan.seconds == cost) return cost;
  good = false;
  std::printf("%s: not a plan of %s at %.1f\n", one.file.c_str(), one.name.c_str(), cost);
  return std::nullopt;
}

void write_reference(const Case& one, const Schedule& plan) {
  std::ofstream file(one.file);
  file << fmt::format("{} {}\n", one.name, plan.seconds);
  std::string line;
  for (const ListedAction& action : action_list_of(plan).actions) {
    const std::string task = std::to_string(action.id);
    if (line.size() + task.size() > 98) {
      file << line << '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + task;
  }
  file << line << '\n';
}

// The plan's cost as a part of the reference's, where there are both.
std::optional<double> fit_one(const Case& one, const FitOptions& options, bool keep, bool& good,
                              int& planned) {
  const std::optional<double> reference = reference_of(one, good);
  const auto fitted = fit(one.workload, options);
  if (!fitted) {
    std::printf("%s none: %s\n", one.name.c_str(), fitted.error().message.c_str());
    return std::nullopt;
  }
  const Schedule& plan = fitted->schedule;
  const auto verdict = verify_schedule(one.workload, plan, one.budget, options.copies);
  good = good && verdict.has_value();
  ++planned;
  std::printf("%s %.1f  +%.2f %%", one.name.c_str(), plan.seconds, 100 * fitted->overhead());
  if (reference) std::printf("  %.3f of the reference", plan.seconds / *reference);
  std::printf("  %s\n", verdict ? "" : verdict.error().message.c_str());
  if (keep && verdict && (!reference || plan.seconds < *reference)) write_reference(one, plan);
  return reference ? std::optional(plan.seconds / *reference) : std::nullopt;
}

void print_spread(const Family& family, int planned, std::uint64_t seeds,
                  std::vector<double> parts) {
  std::printf("%s: %d of %llu planned", family.name.c_str(), planned,
              static_cast<unsigned long long>(seeds));
  std::sort(parts.begin(), parts.end());
  if (!parts.empty())
    std::printf(", %.3f of the reference (%.3f to %.3f)", parts[parts.size() / 2], parts.front(),
                parts.back());
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto word = [&](std::size_t i, const char* otherwise) {
    return i < words.size() ? words[i] : std::string(otherwise);
  };
  const std::uint64_t first = std::stoull(word(2, "101")), last = std::stoull(word(3, "110"));
  bool good = true;
  for (const Family& family : kFamilies) {
    if (!family.name.starts_with(word(1, ""))) continue;
    int planned = 0;
    std::vector<double> parts;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
      const Case one = case_of(family, seed);
      FitOptions options;
      options.budget = one.budget;
      options.deadline_seconds = std::stod(word(0, "10"));
      options.threads = std::stoi(word(4, "2"));
      options.bound = false;
      options.on_none = [](Bytes) {};  // so that the error names the smallest found
      if (const auto part = fit_one(one, options, word(5, "") == "keep", good, planned))
        parts.push_back(*part);
      std::fflush(stdout);
    }
    print_spread(family, planned, last + 1 - first, parts);
  }
  return good ? 0 : 1;
}
