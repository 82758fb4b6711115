// Walks the table of CPU kernels: every operator in it has an example that its kernel takes, and on
// all of the operator's examples the kernel says what the reference evaluation says. That each
// kernel also keeps inside its memory, takes layouts and runs in place is for the tests beside the
// kernels.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "kernels/example_in_fp32.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/kernels/cpu/packed_bytes.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll {
namespace {

using autodiff::OperatorExample;
using ops::Array;

// Relative to the largest magnitude of the output.
double tolerance_of(const std::string& what) {
  // Scores in the hundreds, whose last digits in fp32 are the exponent's.
  return what.starts_with("attention (scores far from zero)") ? 2e-4 : 2e-5;
}

std::vector<Array> run_kernel(const ExampleCall& call) {
  const ir::Node& node = call.graph.nodes.front();
  auto kernel = kernels::make_cpu_kernel(call.graph, node, {1});
  EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
  // Vectors of the largest alignment a kernel may count on.
  struct alignas(kernels::kAlignment) Line {
    std::byte bytes[kernels::kAlignment];
  };
  std::vector<std::vector<Line>> memory;
  const auto take = [&](std::int64_t bytes) {
    memory.emplace_back(static_cast<std::size_t>(bytes) / sizeof(Line) + 1);
    return memory.back().front().bytes;
  };
  std::vector<const std::byte*> inputs;
  for (const auto& input : call.inputs) {
    if (!input) {
      inputs.push_back(nullptr);
      continue;
    }
    const std::vector<std::byte> bytes = input->to_bytes();
    std::byte* place = take(static_cast<std::int64_t>(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), place);
    inputs.push_back(place);
  }
  std::vector<std::byte*> outputs;
  for (const ir::TensorType& type : ops::output_types(call.graph, node))
    outputs.push_back(take(ir::bytes_of(type).value));
  (*kernel)->run({inputs, outputs, take((*kernel)->scratch().value)});
  std::vector<Array> out;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ir::TensorType& type = call.graph.value(node.outputs[i]).type;
    const auto size = static_cast<std::size_t>(ir::bytes_of(type).value);
    out.push_back(*Array::from_bytes({type.dtype, type.shape, {}},
                                     kernels::to_row_major(type, {outputs[i], size})));
  }
  return out;
}

void expect_close(const Array& found, const Array& expected, const std::string& what) {
  EXPECT_EQ(found.integers, expected.integers) << what;
  double largest = 1e-6;
  for (const double value : expected.reals) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  ASSERT_EQ(found.reals.size(), expected.reals.size()) << what;
  for (std::size_t i = 0; i < found.reals.size(); ++i) {
    const double a = found.reals[i];
    const double b = expected.reals[i];
    const bool same = a == b || (std::isnan(a) && std::isnan(b));
    EXPECT_TRUE(same || std::abs(a - b) <= tolerance_of(what) * largest)
        << what << " element " << i << ": " << a << ", the reference says " << b;
  }
}

// Where the examples of the gradient checks are of a dtype or along an axis that no kernel takes.
std::vector<OperatorExample> for_kernels() {
  const Array x = autodiff::example_signed({2, 3}, 0.5, 2, 1);
  const Array y = autodiff::example_signed({2, 3}, 0.5, 2, 2);
  // Indices and labels outside: a zero is read and nothing written, a loss is NaN.
  const Array far = autodiff::example_integers({3}, {2, 7, -9});
  const Array labels = autodiff::example_integers({2}, {3, 1});
  const Array row = autodiff::example_signed({2}, 0.5, 2, 3);
  const Array one = autodiff::example_signed({}, 0.5, 2, 4);
  const ir::Attributes table{{"axis", std::int64_t{0}}, {"shape", ir::Ints{4, 3}}};
  const Array moved = autodiff::example_signed({3, 3}, 0.5, 2, 5);
  return {{"gather", "outside", {x, far}, {{"axis", std::int64_t{1}}}, false, {}},
          {"gather_grad", "outside", {moved, far}, table, false, {}},
          {"cross_entropy", "label outside", {x, labels}, {}, false, {}},
          {"cross_entropy_grad", "label outside", {one, x, labels, row}, {}, false, {}},
          {"cast", "to bf16", {x}, {{"to", std::string("bf16")}}, false, {}},
          {"softmax_grad", "last axis", {x, y}, {}, false, {}},
          {"log_softmax_grad", "last axis", {x, y}, {}, false, {}}};
}

TEST(KernelTable, AgreesWithTheReferenceOnEveryExample) {
  std::multimap<std::string, OperatorExample> examples;
  for (const auto& list : {autodiff::operator_examples(), autodiff::examples_without_gradient()}) {
    for (const OperatorExample& example : list) examples.emplace(example.op, example);
  }
  for (const OperatorExample& example : for_kernels()) examples.emplace(example.op, example);
  for (const kernels::TableEntry& entry : kernels::cpu_table()) {
    int taken = 0;
    const auto [first, last] = examples.equal_range(std::string(entry.op));
    for (auto at = first; at != last; ++at) {
      const std::string what = fmt::format("{} ({})", at->first, at->second.what);
      const ExampleCall call = in_fp32(at->second);
      ASSERT_FALSE(call.graph.nodes.empty()) << what;
      const ir::Node& node = call.graph.nodes.front();
      taken += kernels::has_special_kernel(call.graph, node);
      std::vector<const Array*> inputs;
      for (const auto& input : call.inputs) inputs.push_back(input ? &*input : nullptr);
      const std::vector<Array> expected = ops::evaluate(call.graph, node, inputs);
      const std::vector<Array> found = run_kernel(call);
      for (std::size_t i = 0; i < expected.size(); ++i)
        expect_close(found[i], expected[i], fmt::format("{} output {}", what, i));
    }
    EXPECT_GT(taken, 0) << "no example reaches the kernel of " << entry.op;
  }
}

}  // namespace
}  // namespace plimsoll
