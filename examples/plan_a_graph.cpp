// Build a small network, make the graph that trains it, plan its memory, and run three steps.
#include <cstdio>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/autodiff/training.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/runtime/run.h"

using namespace plimsoll;

namespace {

Result<ir::Graph> build() {
  ops::Builder b("two-layers");
  const ir::Init small{ir::Init::Kind::kNormal, 0, 0.05};
  const ops::Var x = b.source("x", ir::ValueKind::kInput, {ir::DType::kF32, {64, 256}});
  const ops::Var labels = b.source("labels", ir::ValueKind::kInput, {ir::DType::kI64, {64}},
                                   {ir::Init::Kind::kUniform, 0, 10});
  const ops::Var w1 = b.weight("fc1.weight", {ir::DType::kF32, {256, 512}}, small);
  const ops::Var w2 = b.weight("fc2.weight", {ir::DType::kF32, {512, 10}}, small);
  const ops::Var logits = ops::matmul(ops::relu(ops::matmul(x, w1)), w2);
  return b.finish({ops::cross_entropy(logits, labels).loss});
}

Status run() {
  PLIMSOLL_TRY(const ir::Graph forward, build());
  PLIMSOLL_TRY(const ir::Graph training, autodiff::make_training_graph(forward, {}));
  api::PlanOptions options;
  PLIMSOLL_TRY(options.kernels, kernels::cpu_kernel_facts(training, {}));
  PLIMSOLL_TRY(api::PlannedGraph planned, api::plan_graph(training, options));
  std::printf("every tensor its own memory %s, planned %s\n",
              human(planned.summary.baseline).c_str(), human(planned.plan.arena_bytes()).c_str());
  PLIMSOLL_TRY(const api::RunReport report, runtime::run_plan(std::move(planned.plan), {}));
  for (const double loss : report.losses) std::printf("loss %.4f\n", loss);
  std::printf("measured peak %s\n", human(report.peak).c_str());
  return {};
}

}  // namespace

int main() {
  const Status status = run();
  if (!status) std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
