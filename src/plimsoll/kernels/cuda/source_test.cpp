// What can be known of CUDA kernels without a GPU: which operators have one, and that everything
// generated compiles.
#include <string_view>

#include <gtest/gtest.h>

#include "plimsoll/kernels/cuda/cuda_kernels.h"
#include "plimsoll/kernels/cuda/nvrtc.h"
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/source_math.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/kernels/cuda/testing/on_the_cpu_only.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/elementwise/activation_formulas.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels::cuda {
namespace {

void expect_compiles(const Pointwise& pointwise, const std::string& what) {
  const auto code = compile_source(pointwise_source(pointwise), "sm_90");
  ASSERT_TRUE(code.has_value()) << what << ": " << code.error().message;
  EXPECT_GT(code->size(), 0U) << what;
}

PointwiseTensor lying(ir::DType dtype, const Strides& strides) {
  return {dtype, strides};
}

TEST(KernelTableOfCuda, HasEveryOperator) {
  for (const ops::OpDefinition& definition : ops::registry()) {
    // Collectives are the communicator's.
    const bool own =
        !ops::is_collective(definition.name) && !kOnTheCpuOnly.contains(definition.name);
    EXPECT_EQ(has_cuda_kernel(definition.name), own) << definition.name;
  }
}

TEST(KernelTableOfCuda, NamesOnlyOperatorsThatExist) {
  for (const TableEntry& entry : cuda_table())
    EXPECT_NE(ops::find_definition(entry.op), nullptr) << entry.op;
}

TEST(GeneratedSource, EveryTypeAndPackingCompiles) {
  using ir::DType;
  for (const DType dtype :
       {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kI16,
        DType::kI8, DType::kU64, DType::kU32, DType::kU16, DType::kU8, DType::kBool}) {
    Pointwise flat{.space = {dtype, {1001}, {}},
                   .inputs = {lying(dtype, {1}), lying(dtype, {0})},
                   .outputs = {lying(dtype, {1})},
                   .results = {"maximum(a, b) + quotient(a, b)"}};
    expect_compiles(flat, std::string(ir::name(dtype)));
    Pointwise strided{.space = {dtype, {7, 5, 3}, {}},
                      .inputs = {lying(dtype, {1, 7, 35}), lying(dtype, {0, 3, 1})},
                      .outputs = {lying(dtype, {15, 3, 1})},
                      .results = {"p0 > 3 ? a : b"}};
    strided.positions = {{15, 3, 1}};
    expect_compiles(strided, std::string(ir::name(dtype)));
  }
}

TEST(GeneratedSource, ShortFunctionsCompile) {
  Pointwise both{.space = {ir::DType::kBF16, {1001}, {}},
                 .inputs = {lying(ir::DType::kBF16, {1}), lying(ir::DType::kBF16, {1})},
                 .outputs = {lying(ir::DType::kBF16, {1})},
                 .results = {"short_erfc(a) * short_exp(b)"}};
  expect_compiles(both, "short functions");
}

TEST(GeneratedSource, WideLoopsCompile) {
  Pointwise wide{.space = {ir::DType::kF32, {std::int64_t{1} << 20, std::int64_t{1} << 12}, {}},
                 .inputs = {lying(ir::DType::kF32, {std::int64_t{1} << 12, 1})},
                 .outputs = {lying(ir::DType::kBF16, {1, std::int64_t{1} << 20})},
                 .results = {"a"}};
  EXPECT_NE(pointwise_source(wide).find("unsigned long long Index"), std::string::npos);
  expect_compiles(wide, "64-bit offsets");
}

template <template <typename> class Formula>
void expect_formula(const ir::Attributes& given, std::string_view op) {
  const ops::AttributeReader attributes = ops::find_definition(op)->read(given);
  const auto formula = ops::formula_for<Formula<SourceMath>>(attributes);
  SourceWriter writer;
  const Term value = formula.value(writer.input("a"));
  Pointwise pointwise{.space = {ir::DType::kF32, {100}, {}},
                      .inputs = {lying(ir::DType::kF32, {1})},
                      .outputs = {lying(ir::DType::kF32, {1})},
                      .results = {value.text}};
  pointwise.statements = writer.statements();
  expect_compiles(pointwise, std::string(op));
  if constexpr (requires { formula.gradient(value, value); }) {
    SourceWriter other;
    const Term slope = formula.gradient(other.input("a"), other.input("b"));
    pointwise.inputs.push_back(lying(ir::DType::kF32, {1}));
    pointwise.results = {slope.text};
    pointwise.statements = other.statements();
    expect_compiles(pointwise, std::string(op) + "_grad");
  }
}

TEST(GeneratedSource, EveryFormulaCompiles) {
  expect_formula<ops::Celu>({}, "celu");
  expect_formula<ops::Clip>({{"min", -1.0}, {"max", 1.0}}, "clip");
  expect_formula<ops::Elu>({}, "elu");
  expect_formula<ops::GeluExact>({}, "gelu");
  expect_formula<ops::GeluTanh>({}, "gelu");
  expect_formula<ops::HardSigmoid>({}, "hard_sigmoid");
  expect_formula<ops::HardSwish>({}, "hard_swish");
  expect_formula<ops::LeakyRelu>({}, "leaky_relu");
  expect_formula<ops::Mish>({}, "mish");
  expect_formula<ops::Reciprocal>({}, "reciprocal");
  expect_formula<ops::Relu>({}, "relu");
  expect_formula<ops::Rsqrt>({}, "rsqrt");
  expect_formula<ops::Selu>({}, "selu");
  expect_formula<ops::Shrink>({}, "shrink");
  expect_formula<ops::Sigmoid>({}, "sigmoid");
  expect_formula<ops::Sign>({}, "sign");
  expect_formula<ops::Silu>({}, "silu");
  expect_formula<ops::Softplus>({}, "softplus");
  expect_formula<ops::Softsign>({}, "softsign");
  expect_formula<ops::Tanh>({}, "tanh");
  expect_formula<ops::ThresholdedRelu>({}, "thresholded_relu");
}

TEST(GeneratedSource, AWrongExpressionSaysSo) {
  Pointwise wrong{.space = {ir::DType::kF32, {10}, {}},
                  .inputs = {lying(ir::DType::kF32, {1})},
                  .outputs = {lying(ir::DType::kF32, {1})},
                  .results = {"no_such_function(a)"}};
  const auto code = compile_source(pointwise_source(wrong), "sm_90");
  ASSERT_FALSE(code.has_value());
  EXPECT_NE(code.error().message.find("no_such_function"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::kernels::cuda
