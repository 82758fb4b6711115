// Every example of every operator, in fp32, on the GPU: what the kernels say and what the reference
// evaluation says. The counterpart of tests/kernels/kernel_table_test.cpp.
#include <map>

#include <gtest/gtest.h>

#include "kernels/example_in_fp32.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/kernels/cuda/testing/device_run.h"
#include "plimsoll/kernels/cuda/testing/on_the_cpu_only.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/collective/shard.h"

namespace plimsoll {
namespace {

using autodiff::OperatorExample;
using ops::Array;

kernels::Differential tolerances(const OperatorExample& example) {
  kernels::Differential out{.op = example.op, .inputs = {}};
  // Scores in the hundreds, whose last digits in fp32 are the exponent's.
  if (example.what.starts_with("scores far from zero")) out.tolerance = 2e-4;
  return out;
}

TEST(CudaKernelTable, AgreesWithTheReferenceOnEveryExample) {
  std::map<std::string, int> taken;
  for (const auto& list : {autodiff::operator_examples(), autodiff::examples_without_gradient()}) {
    for (const OperatorExample& example : list) {
      SCOPED_TRACE(fmt::format("{} ({})", example.op, example.what));
      // The communicator's too; a part has a whole number of lines, so an example in fp64 is none
      // in fp32.
      if (ops::is_shard_operator(example.op)) continue;
      ExampleCall call = in_fp32(example);
      kernels::Built built{std::move(call.graph), {}};
      for (auto& input : call.inputs) built.arrays.push_back(std::move(input).value_or(Array()));
      ASSERT_FALSE(built.graph.nodes.empty());
      auto kernel = kernels::cuda::make_cuda_kernel(built.graph, NodeId(0), {});
      // Collectives are the communicator's, and gradients of some rows of a table are made on the
      // host alone (ShardOptions::table_rows).
      const bool has_none = ops::is_collective(example.op) ||
                            kernels::cuda::kOnTheCpuOnly.contains(example.op) ||
                            (example.op == "gather_grad" && example.what == "some rows");
      EXPECT_EQ(kernel.has_value(), !has_none) << (kernel ? "" : kernel.error().message);
      if (!kernel) continue;
      ++taken[example.op];
      kernels::cuda::expect_kept_promises(tolerances(example), built, **kernel);
    }
  }
  for (const kernels::cuda::TableEntry& entry : kernels::cuda::cuda_table())
    EXPECT_GT(taken[std::string(entry.op)], 0) << "no example reaches the kernel of " << entry.op;
}

}  // namespace
}  // namespace plimsoll
