#include "plimsoll/cli/plan_dag.h"

#include <fmt/format.h>

#include <cstdio>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/file.h"
#include "plimsoll/cli/search_progress.h"

namespace plimsoll::cli {
namespace {

void print_point(const api::PlanDagPoint& point) {
  const double gap = (1 + point.overhead) / (1 + point.lower_bound_overhead) - 1;
  const std::string note =
      point.proven_optimal
          ? "proven best for this order"
          : fmt::format("at most {:.2f}% slower than any plan possible for this order", 100 * gap);
  std::printf("%-12s %8.2f%% slower (%s)  %lld recomputed, %s swapped, %s encoded\n",
              human(point.peak_bytes).c_str(), 100 * point.overhead, note.c_str(),
              static_cast<long long>(point.recomputed), human(point.swapped_bytes).c_str(),
              human(point.encoded_bytes).c_str());
}

void print_proof(const api::DagProof& proof, bool interrupted) {
  using Result = api::DagProof::Result;
  const std::string bound = cost_text(proof.bound_seconds, 6);
  switch (proof.result) {
    case Result::kOptimum:
      std::printf(
          "proved       no plan within the budget that first runs the nodes in this order takes "
          "less than %s: this one is optimal\n",
          bound.c_str());
      break;
    case Result::kBound:
      std::printf(
          "proved       no plan within the budget that first runs the nodes in this order takes "
          "less than %s; whether one so fast exists is open\n",
          bound.c_str());
      break;
    case Result::kNothing:
      std::printf("proved       nothing: cbc had no answer in %.3g s%s\n", proof.seconds,
                  interrupted ? "" : "; give a longer --deadline or a smaller graph");
      break;
  }
}

void print(const api::PlanDagReport& report) {
  std::printf("no recompute %s in %s\n", human(report.no_recompute_bytes).c_str(),
              cost_text(report.no_recompute_seconds, 6).c_str());
  if (report.slowdown) {
    std::printf("fast enough  at most %.3g %% more time\n", 100 * *report.slowdown);
  } else {
    std::printf("budget       %s\n", human(report.budget_bytes).c_str());
  }
  if (report.split_tasks > 0)
    std::printf("split        %lld nodes in %lld parts\n",
                static_cast<long long>(report.split_tasks),
                static_cast<long long>(report.split_parts));
  for (const api::PlanDagPoint& point : report.points) {
    std::printf("plan         ");
    print_point(point);
  }
  if (report.interrupted) std::printf("interrupted  the best plan found until then\n");
  if (report.proof) print_proof(*report.proof, report.interrupted);
  if (report.failure || !report.limiting.empty()) {
    std::vector<std::string> names;
    std::vector<Bytes> bytes;
    for (const auto& value : report.limiting) {
      names.push_back(value.name);
      bytes.push_back(value.bytes);
    }
    std::printf("limited by   %s: %s\n", human(report.bound_bytes).c_str(),
                named_bytes(names, bytes).c_str());
  }
}

}  // namespace

Status plan_dag(const api::PlanDagRequest& asked, bool json, Command& command) {
  api::PlanDagRequest request = asked;
  PLIMSOLL_TRY(const double deadline, parse_seconds(request.planning.deadline));
  request.stop = stop_on_interrupt();
  request.on_better = progress_on_terminal(deadline);
  PLIMSOLL_TRY(const api::PlanDagReport report, api::plan_dag(request));
  request.on_better = {};  // wipes the line
  if (request.sweep && !request.output.empty())
    PLIMSOLL_RETURN_IF_ERROR(write_file(request.output, api::to_json(report, true) + "\n"));
  if (json) {
    command.answer(api::to_json(report, request.sweep));
  } else {
    print(report);
    if (!report.failure && !request.output.empty() && !request.sweep &&
        !request.output.string().starts_with("/dev/"))
      std::printf("look at it   plimsoll view %s\n", request.output.c_str());
  }
  if (report.failure) return tl::unexpected<Error>(*report.failure);
  return {};
}

}  // namespace plimsoll::cli
