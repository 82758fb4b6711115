// How policies that only copy do in less memory than their tensors take, on a clock that nobody
// waits for (runtime/paging/rehearsal.h), with the operators' times of a device profile:
//
//   paging_bench [PROFILE]          belady on six models; h200 by default
//
// Of each model and factor (arena of the default plan / capacity) the slowdown, and in parentheses
// how many times the bound that is: once with the next 16 launches looked at and nothing written
// home ahead, once as chosen_options() has it.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/profile/operator_costs.h"
#include "plimsoll/runtime/paging/rehearsal.h"

namespace {

using namespace plimsoll;

struct Work {
  std::string model;
  model::ModelOptions sizes;
};

std::string told(const runtime::PagedProgram& program, const runtime::PagingOptions& how) {
  const auto step = runtime::rehearse(program, how);
  if (!step) return "–";
  const runtime::PagingRates rates;
  const double moved =
      std::max(static_cast<double>(step->counts.out.value) / rates.out_bytes_per_second,
               static_cast<double>(step->counts.in.value) / rates.in_bytes_per_second);
  const double bound = std::max(runtime::least_seconds(program, how.capacity), moved);
  return fmt::format("{:.2f} ({:.2f})", step->seconds / program.seconds(), step->seconds / bound);
}

Status rehearse_model(const Work& work, const std::string& profile) {
  api::Pipeline p;
  p.request.model = work.model;
  p.request.sizes = work.sizes;
  p.request.tf32 = true;
  p.device = profile;
  PLIMSOLL_RETURN_IF_ERROR(api::advance(p, api::Stage::kPlanned));
  const ir::Graph& graph = p.model.graph;
  runtime::PagedProgram program = runtime::paged_program(
      graph, [&](NodeId id) { return p.kernels.of(graph, graph.node(id)).scratch; });
  for (std::size_t n = 0; n < program.launches.size(); ++n)
    program.launches[n].seconds = profile::node_cost(p.profile, graph, graph.nodes[n]).seconds;
  for (const double factor : {1.1, 1.5, 2.0, 3.0}) {
    runtime::PagingOptions how;
    how.policy = runtime::PagingPolicy::kBelady;
    how.alignment = Bytes(256);
    how.capacity = Bytes(static_cast<std::int64_t>(
        static_cast<double>(p.planned.plan.arena_bytes().value) / factor));
    const auto chosen = runtime::chosen_options(program, how);
    how.write_behind = false;
    fmt::print("{:<14} {:.1f}  {:>12}  {:>12}\n", work.model, factor, told(program, how),
               chosen ? told(program, *chosen) : "–");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string profile = argc > 1 ? argv[1] : "h200";
  fmt::print("model      factor        before           now   slowdown (times the bound)\n");
  for (const Work& work : std::vector<Work>{{"resnet50", {.batch = 32}},
                                            {"resnet101", {.batch = 32}},
                                            {"gpt2", {.batch = 8, .seq = 1024}},
                                            {"bert", {.batch = 16, .seq = 512}},
                                            {"alexnet", {.batch = 128}},
                                            {"whisper-small", {.batch = 16}}}) {
    if (const Status status = rehearse_model(work, profile); !status)
      return fmt::print("{}: {}\n", work.model, status.error().message), 1;
  }
}
