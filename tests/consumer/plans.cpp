// What the installed package is for: a graph planned under a budget, and the caching allocator
// replaying its bytes.
#include <cstdio>

#include <plimsoll/memory/caching_allocator.h>
#include <plimsoll/memory/fake_device.h>
#include <plimsoll/ops/builder.h>
#include <plimsoll/ops/functions.h>
#include <plimsoll/plan/check_plan.h>
#include <plimsoll/plan/make_plan.h>
#include <plimsoll/schedule/fit.h>
#include <plimsoll/schedule/verify_schedule.h>
#include <plimsoll/schedule/workload/graph_workload.h>
#include <plimsoll/trace/trace_file.h>

using namespace plimsoll;

namespace {

// Six layers, all of whose results are read again at the end.
Result<ir::Graph> graph() {
  ops::Builder b("consumer");
  ops::Var x = b.input("x", {ir::DType::kF32, {64, 64}});
  std::vector<ops::Var> layers;
  for (int i = 0; i < 6; ++i) layers.push_back(x = ops::softmax(x));
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) x = ops::matmul(x, *layer);
  return b.finish({x});
}

Status run() {
  PLIMSOLL_TRY(const ir::Graph network, graph());
  PLIMSOLL_TRY(const schedule::GraphWorkload mapped, schedule::make_graph_workload(network, {}));
  const Bytes kept = schedule::keep_all(mapped.workload).peak_bytes;
  schedule::FitOptions options;
  options.budget = Bytes(kept.value * 7 / 10);
  options.deterministic = true;
  PLIMSOLL_TRY(const schedule::Fit fitted, schedule::fit(mapped.workload, options));
  PLIMSOLL_RETURN_IF_ERROR(
      schedule::verify_schedule(mapped.workload, fitted.schedule, options.budget, options.copies));
  PLIMSOLL_TRY(const plan::Plan planned, plan::make_plan(network, mapped, fitted.schedule, {}));
  const plan::PlanCheck check = plan::check_plan(planned);
  if (!check.problems.empty()) return fail(ErrorCode::kInternal, "{}", check.problems.front());
  std::printf("kept %lld, planned %lld bytes\n", static_cast<long long>(kept.value),
              static_cast<long long>(planned.arena_bytes().value));
  if (planned.arena_bytes() >= kept)
    return fail(ErrorCode::kInternal, "the plan needs no less than keeping everything");

  memory::FakeDevice device;
  memory::CachingAllocator allocator(device, device);
  const memory::Address first = allocator.allocate(planned.arena_bytes(), memory::StreamId{});
  if (first == 0 || !allocator.free(first))
    return fail(ErrorCode::kInternal, "the allocator refused");
  const memory::Address second = allocator.allocate(planned.arena_bytes(), memory::StreamId{});
  if (second != first || !allocator.free(second))
    return fail(ErrorCode::kInternal, "the allocator did not use its memory again");
  return {};
}

}  // namespace

int main() {
  const Status done = run();
  if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
