#include "plimsoll/api/testing/small_run.h"

#include <gtest/gtest.h>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/small_sizes.h"

namespace plimsoll::api {

ModelRequest small_request(const std::string& model) {
  ModelRequest out;
  out.model = model;
  out.sizes = small_sizes(model);
  out.sizes.batch = 8;  // so that there are activations to do without
  out.optimizer = "sgd";
  out.threads = 1;
  return out;
}

Result<SmallRun> run_small(const std::string& model, const SmallRunOptions& options) {
  Pipeline p;
  p.request = small_request(model);
  p.request.amp = options.amp;
  if (options.layers > 0) p.request.sizes.layers = options.layers;
  p.backend = options.backend;
  p.measure = false;
  p.on_demand = options.on_demand;
  p.paging = options.paging;
  p.planning.budget = options.budget;
  p.planning.remedies = {.recompute = true, .swap = options.swap, .encode = false};
  p.planning.deterministic = true;
  p.planning.streams = options.streams;
  p.planning.swaps_to_file = !options.swap_file.empty();
  p.running.steps = options.steps;
  p.running.threads = 1;
  p.running.poison = options.poison;
  p.running.swap_file = options.swap_file;
  p.running.measure = options.measure;
  SmallRun out;
  p.running.on_end = [&](runtime::Executor& executor) -> Status {
    out.left = runtime::left_behind(executor);
    return {};
  };
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kRun));
  out.report = std::move(p.report);
  return out;
}

void expect_paging_keeps_the_bits(
    const std::string& model, const std::function<std::shared_ptr<kernels::Backend>()>& device) {
  const auto expected = run_small(model, {.backend = device(), .on_demand = true});
  ASSERT_TRUE(expected) << expected.error().message;
  for (const auto policy : {runtime::PagingPolicy::kDemand, runtime::PagingPolicy::kPrefetch,
                            runtime::PagingPolicy::kPreEvict, runtime::PagingPolicy::kBelady}) {
    for (const bool forget : {true, false}) {
      int decided = 0;
      for (const int percent : {70, 85, 110}) {
        SCOPED_TRACE(testing::Message()
                     << runtime::name(policy) << " forgets " << forget << ", " << percent << " %");
        runtime::PagingOptions paging;
        paging.policy = policy;
        paging.forget_dead = forget;
        paging.capacity = Bytes(expected->report.peak.value * percent / 100);
        const auto ran =
            run_small(model, {.backend = device(), .on_demand = true, .paging = paging});
        // One operator may take more than that at once.
        if (!ran && ran.error().code == ErrorCode::kDoesNotFit) continue;
        ASSERT_TRUE(ran) << ran.error().message;
        ++decided;
        EXPECT_TRUE(ran->left == expected->left);
        EXPECT_LE(ran->report.peak, paging.capacity);
        ASSERT_TRUE(ran->report.paging);
        EXPECT_LE(ran->report.paging->peak, paging.capacity);
      }
      EXPECT_GE(decided, 1) << runtime::name(policy);
    }
  }
}

}  // namespace plimsoll::api
