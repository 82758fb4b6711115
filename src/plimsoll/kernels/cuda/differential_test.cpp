// What agreement is on the GPU, for the cases shared with the CPU, and cases of this device's own.
#include <array>

#include "plimsoll/kernels/cuda/testing/device_run.h"
#include "plimsoll/kernels/cuda/testing/on_the_cpu_only.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/ops/update/update.h"

namespace plimsoll::kernels {
namespace {

// oneDNN's layouts of blocks, and elements and operators that no model on a GPU has: an error must
// say so.
bool is_for_the_cpu(const ir::Graph& graph) {
  if (cuda::kOnTheCpuOnly.contains(graph.nodes.front().op)) return true;
  for (const ir::Value& value : graph.values) {
    if (value.type.layout.block_count != 0 || value.type.dtype == ir::DType::kF64) return true;
  }
  return false;
}

bool all_finite(const Built& built) {
  for (const ops::Array& array : built.arrays) {
    for (const double value : array.reals) {
      if (!std::isfinite(value)) return false;
    }
  }
  return true;
}

}  // namespace

void expect_agreement(const Differential& given) {
  Random random(0x5eed);
  const Built built = build(given, random);
  Differential d = given;
  // cuDNN's engines differ in what they make of infinite data beside padding.
  d.only_finite = d.op.starts_with("conv") && !all_finite(built);
  if (built.graph.nodes.empty()) return;
  const ir::Node& node = built.graph.nodes.front();
  const std::string signature = ops::signature(built.graph, node);
  SCOPED_TRACE(signature);
  auto kernel = cuda::make_cuda_kernel(built.graph, NodeId(0), {});
  if (!kernel) {
    EXPECT_TRUE(is_for_the_cpu(built.graph) || d.may_fall_back) << kernel.error().message;
    EXPECT_NE(kernel.error().message.find(node.op), std::string::npos)
        << "the operator is not named";
    return;
  }
  cuda::expect_kept_promises(d, built, **kernel);
}

namespace {

using ir::Ints;

Tensor f16(const ir::Shape& shape) {
  return {{ir::DType::kF16, shape, {}}};
}

TEST(CudaWidths, Bfloat16AndHalfAreComputedInFloat) {
  for (const auto make : {bf16, f16}) {
    const auto case_of = [&](std::string op, std::vector<Tensor> inputs, ir::Attributes how = {}) {
      expect_agreement({.op = std::move(op),
                        .inputs = std::move(inputs),
                        .attributes = std::move(how),
                        .tolerance = 1e-2});
    };
    case_of("add", {make({3, 70}), make({70})});
    case_of("gelu", {make({3, 71})});
    case_of("linear", {make({64, 24}), make({24, 40}), make({40})});
    case_of("linear_grad_weight", {make({64, 24}), make({64, 40})}, {{"bias", std::int64_t{1}}});
    case_of("matmul", {make({2, 3, 8, 16}), make({2, 3, 16, 24})});
    case_of("layer_norm", {make({40, 96}), make({96}), make({96})});
    case_of("layer_norm", {make({40, 96}), f32({96}), f32({96})});
    case_of("softmax", {make({30, 77})});
    case_of("cross_entropy", {make({30, 7}), i64({30}, 7)});
    case_of("conv", {make({2, 8, 9, 9}), make({16, 8, 3, 3}), make({16})},
            {{"pads", Ints{1, 1, 1, 1}}});
    case_of("batch_norm", {make({3, 20, 5, 7}), f32({20}), f32({20})});
    case_of("max_pool", {make({2, 20, 9, 11})}, {{"kernel", Ints{3, 3}}});
    case_of("gather_grad", {make({4, 5, 100}), i64({4, 5}, 7)},
            {{"axis", std::int64_t{0}}, {"shape", Ints{7, 100}}});
    case_of("attention_qkv", {make({2, 70, 96})}, {{"heads", std::int64_t{2}}});
  }
}

// Sizes around packs, warps, blocks and tiles.
TEST(CudaEdges, SizesAroundPacksAndBlocks) {
  for (const std::int64_t n : {1, 3, 4, 5, 31, 33, 255, 257, 1023, 4097, 70001}) {
    expect_agreement({"add", {f32({n}), f32({n})}});
    expect_agreement({"reduce_sum", {f32({n})}, {{"axes", Ints{0}}}});
    expect_agreement({"reduce_sum", {f32({3, n})}, {{"axes", Ints{0}}}});
    expect_agreement({"softmax", {f32({2, n})}});
    expect_agreement({"layer_norm", {f32({2, n}), f32({n}), f32({n})}});
    expect_agreement({"transpose", {f32({n, 17})}, {{"perm", Ints{1, 0}}}});
    expect_agreement({"cross_entropy", {f32({3, n}), i64({3}, static_cast<double>(n))}});
    expect_agreement({"add", {f32({5, n}), f32({5, 1})}});
  }
}

TEST(CudaEdges, LongReductionsAreSplit) {
  expect_agreement({"reduce_sum", {f32({3000, 40})}, {{"axes", Ints{0}}}});
  expect_agreement({"reduce_mean", {f32({1, 2000000})}, {{"axes", Ints{1}}}});
  expect_agreement({"reduce_max", {f32({2, 300000})}, {{"axes", Ints{1}}}});
  expect_agreement({"batch_norm", {f32({8, 4, 60, 60}), f32({4}), f32({4})}});
  expect_agreement({"batch_norm", {last({8, 4, 60, 60}), f32({4}), f32({4})}});
  expect_agreement({"sum_squares", {f32({700000})}});
}

TEST(CudaEdges, TransposesOfEveryWidth) {
  for (const Ints& perm :
       {Ints{0, 2, 3, 1}, Ints{0, 3, 1, 2}, Ints{3, 2, 1, 0}, Ints{1, 0, 2, 3}}) {
    for (const Tensor& x : {f32({2, 33, 9, 40}), bf16({2, 33, 9, 40}), i64({2, 33, 9, 40}, 99)})
      expect_agreement(
          {.op = "transpose", .inputs = {x}, .attributes = {{"perm", perm}}, .tolerance = 0});
  }
}

TEST(CudaDropout, DrawsTheNumbersOfTheReference) {
  const Tensor counter = {{ir::DType::kU64, {}, {}}, 7, 8};
  const ir::Attributes how{{"ratio", 0.3}, {"seed", std::int64_t{11}}};
  expect_agreement({"dropout", {f32({40, 77}), counter}, how});
  expect_agreement({"dropout", {last({2, 6, 5, 7}), counter}, how});
  expect_agreement(
      {.op = "dropout", .inputs = {bf16({40, 77}), counter}, .attributes = how, .tolerance = 1e-2});
}

TEST(CudaRandomUniform, DrawsTheNumbersOfTheReference) {
  const Tensor counter = {{ir::DType::kU64, {}, {}}, 7, 8};
  for (const char* dtype : {"fp32", "bf16"}) {
    expect_agreement({.op = "random_uniform",
                      .inputs = {counter},
                      .attributes = {{"shape", Ints{40, 77}},
                                     {"dtype", std::string(dtype)},
                                     {"low", -2.0},
                                     {"high", 5.0},
                                     {"seed", std::int64_t{11}}},
                      .tolerance = dtype[0] == 'b' ? 1e-2 : 1e-6});
  }
}

TEST(CudaMasks, AgreeWithTheReference) {
  expect_agreement({"positive_mask", {f32({3, 77})}});
  expect_agreement({"inside_mask", {f32({3, 77})}, {{"min", -1.0}, {"max", 0.5}}});
}

// Tiles of 64 rows and columns, whole and cut, as queries see keys of other lengths.
TEST(CudaFlashAttention, AgreesWithTheReference) {
  const auto attributes = [](std::int64_t causal) {
    return ir::Attributes{{"heads", std::int64_t{2}}, {"causal", causal}};
  };
  const auto expect = [](std::string op, std::vector<Tensor> inputs, ir::Attributes how) {
    expect_agreement({.op = std::move(op),
                      .inputs = std::move(inputs),
                      .attributes = std::move(how),
                      .tolerance = 1e-2});
  };
  for (const std::int64_t width : {32, 64}) {
    const std::int64_t all = 2 * width;
    for (const std::int64_t causal : {0, 1}) {
      for (const std::int64_t rows : {1, 64, 70, 130, 192, 520})
        expect("attention_qkv", {bf16({2, rows, 3 * all})}, attributes(causal));
      expect("attention_qkv", {f16({2, 70, 3 * all})}, attributes(causal));
      for (const auto& [rows, columns] :
           {std::pair{70, 130}, std::pair{130, 70}, std::pair{70, 530}, std::pair{530, 70}}) {
        expect("attention",
               {bf16({1, rows, all}), bf16({1, columns, all}), bf16({1, columns, all})},
               attributes(causal));
      }
    }
  }
}

// y and lse are what the forward pass makes of these inputs: their spread decides the scale of the
// gradient.
TEST(CudaFlashAttention, GradientsAgreeWithTheReference) {
  for (const std::int64_t width : {32, 64}) {
    const std::int64_t all = 2 * width;
    for (const std::int64_t causal : {0, 1}) {
      const ir::Attributes how{{"heads", std::int64_t{2}}, {"causal", causal}};
      for (const std::int64_t rows : {1, 64, 130, 192, 520}) {
        const Tensor lse = {{ir::DType::kF32, {2, 2, rows}, {}}, 5, 7};
        expect_agreement(
            {.op = "attention_qkv_grad",
             .inputs = {bf16({2, rows, all}), bf16({2, rows, 3 * all}), bf16({2, rows, all}), lse},
             .attributes = how,
             .tolerance = 2e-2});
      }
      for (const auto& [rows, columns] :
           {std::pair{70, 130}, std::pair{130, 70}, std::pair{70, 530}, std::pair{530, 70}}) {
        const Tensor lse = {{ir::DType::kF32, {1, 2, rows}, {}}, 5, 7};
        expect_agreement(
            {.op = "attention_grad",
             .inputs = {bf16({1, rows, all}), bf16({1, rows, all}), bf16({1, columns, all}),
                        bf16({1, columns, all}), bf16({1, rows, all}), lse},
             .attributes = how,
             .tolerance = 2e-2});
      }
    }
  }
}

// As exporters write masks: with the least float everywhere a row sees everything alike, forward
// and backward.
TEST(CudaAttention, RowsThatAFiniteMaskHidesEverywhereAreNormalised) {
  const Tensor lse = {{ir::DType::kF32, {2, 2, 70}, {}}, -3.4e38, -3.4e38};
  for (const auto& [make, tolerance] :
       {std::pair<Tensor (*)(const ir::Shape&), double>{f32, 1e-4}, {bf16, 2e-2}}) {
    Tensor hidden = make({70, 70});
    hidden.low = hidden.high = hidden.type.dtype == ir::DType::kF32 ? -3.4e38 : -3.38e38;
    for (const std::int64_t causal : {0, 1}) {
      const ir::Attributes how{{"heads", std::int64_t{2}}, {"causal", causal}};
      expect_agreement({.op = "attention_qkv",
                        .inputs = {make({2, 70, 96}), hidden},
                        .attributes = how,
                        .tolerance = tolerance});
      expect_agreement(
          {.op = "attention_qkv_grad",
           .inputs = {make({2, 70, 32}), make({2, 70, 96}), make({2, 70, 32}), lse, hidden},
           .attributes = how,
           .tolerance = tolerance});
      expect_agreement({.op = "attention_grad",
                        .inputs = {make({2, 70, 32}), make({2, 70, 32}), make({2, 70, 32}),
                                   make({2, 70, 32}), make({2, 70, 32}), lse, hidden},
                        .attributes = how,
                        .tolerance = tolerance});
    }
  }
}

// What TF32 may round away: 10 bits of mantissa are left.
void expect_agreement_in_tf32(const Differential& d) {
  Random random(0x5eed);
  const Built built = build(d, random);
  SCOPED_TRACE(ops::signature(built.graph, built.graph.nodes.front()));
  auto kernel = cuda::make_cuda_kernel(built.graph, NodeId(0), {.tf32 = true});
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  cuda::expect_kept_promises(d, built, **kernel);
}

// Rows that begin at no multiple of 16 bytes, as those of 50,257 logits.
TEST(CudaOddRows, AgreeWithTheReference) {
  const ir::Attributes turned{{"trans_w", std::int64_t{1}}};
  const std::vector<std::pair<Tensor (*)(const ir::Shape&), double>> types{{bf16, 1e-2},
                                                                           {f32, 4e-3}};
  for (const auto& [make, tolerance] : types) {
    const auto expect = [&, within = tolerance](std::string op, std::vector<Tensor> inputs) {
      expect_agreement_in_tf32({.op = std::move(op),
                                .inputs = std::move(inputs),
                                .attributes = turned,
                                .tolerance = within});
    };
    expect("linear", {make({700, 8}), make({24001, 8}), make({24001})});
    expect("linear", {make({700, 24001}), make({8, 24001})});
    expect("linear_grad_weight", {make({700, 8}), make({700, 24001})});
  }
}

// The same rows with padding behind them (rewrite/pad_rows.h): products in two pieces.
TEST(CudaPaddedRows, AgreeWithTheReference) {
  const ir::Layout padded = *ir::parse_layout("@01:64b1");
  const ir::Attributes turned{{"trans_w", std::int64_t{1}}};
  const std::vector<std::pair<Tensor (*)(const ir::Shape&), double>> types{{bf16, 1e-2},
                                                                           {f32, 4e-3}};
  for (const auto& [make, tolerance] : types) {
    const auto rows = [&, of = make](const ir::Shape& shape) {
      Tensor out = of(shape);
      out.type.layout = padded;
      return out;
    };
    const auto expect = [&, within = tolerance](std::string op, std::vector<Tensor> inputs,
                                                ir::Attributes how, bool pads_result) {
      Differential d{.op = std::move(op),
                     .inputs = std::move(inputs),
                     .attributes = std::move(how),
                     .tolerance = within};
      if (pads_result) d.layouts = {padded};
      expect_agreement_in_tf32(d);
    };
    const Tensor labels = i64({700}, 12001);
    expect("linear", {make({700, 16}), make({12001, 16}), make({12001})}, turned, true);
    expect("linear", {rows({700, 12001}), make({16, 12001})}, turned, false);
    expect("linear", {rows({700, 12001}), make({12001, 16})}, {}, false);
    expect("linear_grad_weight", {make({700, 16}), rows({700, 12001})}, turned, false);
    expect("linear_grad_weight", {make({700, 16}), rows({700, 12001})}, {{"bias", std::int64_t{1}}},
           false);
    expect("cross_entropy", {rows({700, 12001}), labels}, {}, false);
    const Tensor one = {{ir::DType::kF32, {}, {}}, 1, 1};
    const Tensor lse = {{ir::DType::kF32, {700}, {}}, 9, 10};
    expect("cross_entropy_grad", {one, rows({700, 12001}), labels, lse}, {}, true);
  }
}

// Channels that lie last, as columns.cu takes them: widths around its groups and blocks.
TEST(CudaColumns, AgreeWithTheReference) {
  for (const std::int64_t channels : {4, 8, 24, 64, 264, 2056}) {
    for (const std::int64_t rows : {1, 3, 700}) {
      const ir::Shape shape{rows, channels, 1, 3};
      for (const bool relu : {false, true}) {
        ir::Attributes how;
        if (relu) how.set("activation", std::string("relu"));
        expect_agreement({"batch_norm", {last(shape), f32({channels}), f32({channels})}, how});
        expect_agreement({"batch_norm_grad",
                          {last(shape),
                           last(shape),
                           f32({channels}),
                           f32({channels}),
                           f32({channels}),
                           {{ir::DType::kF32, {channels}, {}}, 0.5, 2}},
                          how});
      }
      expect_agreement(
          {"batch_norm_add_relu", {last(shape), f32({channels}), f32({channels}), last(shape)}});
    }
    expect_agreement(
        {"linear_grad_weight", {f32({700, 8}), f32({700, channels})}, {{"bias", std::int64_t{1}}}});
    const Tensor statistic = {{ir::DType::kF32, {700}, {}}, 0.5, 2};
    expect_agreement({"layer_norm", {f32({700, channels}), f32({channels}), f32({channels})}});
    expect_agreement(
        {"layer_norm_grad",
         {f32({700, channels}), f32({700, channels}), f32({channels}), statistic, statistic}});
  }
}

TEST(CudaTf32, AgreesWithTheReferenceInFewerDigits) {
  const auto expect = [](std::string op, std::vector<Tensor> inputs, ir::Attributes how = {}) {
    expect_agreement_in_tf32({.op = std::move(op),
                              .inputs = std::move(inputs),
                              .attributes = std::move(how),
                              .tolerance = 4e-3});
  };
  expect("linear", {f32({64, 96}), f32({96, 40}), f32({40})});
  expect("conv", {last({2, 16, 9, 9}), last({32, 16, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
  for (const std::int64_t width : {32, 64}) {
    for (const std::int64_t causal : {0, 1}) {
      const ir::Attributes how{{"heads", std::int64_t{2}}, {"causal", causal}};
      for (const std::int64_t rows : {1, 64, 130, 192, 520}) {
        const Tensor lse = {{ir::DType::kF32, {2, 2, rows}, {}}, 5, 7};
        const Tensor y = f32({2, rows, 2 * width});
        expect("attention_qkv", {f32({2, rows, 6 * width})}, how);
        expect("attention_qkv_grad", {y, f32({2, rows, 6 * width}), y, lse}, how);
      }
    }
  }
}

// Rows that are whole turns of a grid, and ones that are left; columns of one block and of several.
TEST(CudaBatchNorm, ColumnsAndRowsOfEveryNumber) {
  const auto in = [](ir::DType dtype, const ir::Shape& shape) -> Tensor {
    return {{dtype, shape, ir::Layout::channels_last(shape.rank())}};
  };
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16}) {
    for (const auto& [batch, channels, height, width] :
         {std::array{1, 8, 1, 1}, std::array{2, 64, 7, 9}, std::array{4, 256, 7, 14},
          std::array{3, 512, 7, 7}, std::array{2, 1032, 5, 3}, std::array{16, 16, 31, 29}}) {
      const ir::Shape shape{batch, channels, height, width};
      const Tensor x = in(dtype, shape);
      const Tensor row = f32({channels});
      const double tolerance = dtype == ir::DType::kF32 ? 2e-4 : 2e-2;
      for (const char* activation : {"", "relu"}) {
        const ir::Attributes how{{"activation", std::string(activation)}};
        expect_agreement({.op = "batch_norm",
                          .inputs = {x, row, row},
                          .attributes = how,
                          .tolerance = tolerance});
        expect_agreement({.op = "batch_norm_grad",
                          .inputs = {x, x, row, row, row, positive(row)},
                          .attributes = how,
                          .tolerance = tolerance});
      }
    }
  }
}

TEST(CudaUpdates, GroupsTakeWeightsOfEverySize) {
  const std::vector<std::int64_t> sizes{1,    2,    3,    4,    5,     255,   256,   1023,
                                        1024, 1025, 4095, 4098, 70001, 32768, 65537, 7};
  ASSERT_EQ(sizes.size(), static_cast<std::size_t>(ops::kUpdateGroup));
  for (const ir::DType gradient : {ir::DType::kF32, ir::DType::kBF16}) {
    std::vector<Tensor> inputs;
    for (const std::int64_t size : sizes) inputs.push_back(f32({size}));
    for (const std::int64_t size : sizes) inputs.push_back({{gradient, {size}, {}}});
    for (const std::int64_t size : sizes) inputs.push_back(f32({size}));
    for (const std::int64_t size : sizes) inputs.push_back(positive(f32({size})));
    inputs.push_back({{ir::DType::kI64, {}, {}}, 3, 4});
    expect_agreement({.op = "adamw_group",
                      .inputs = inputs,
                      .attributes = {{"lr", 0.01}, {"weight_decay", 0.1}},
                      .tolerance = 1e-5});
  }
}

TEST(CudaConvolution, PaddingsThatDifferAndThreeAxes) {
  expect_agreement({"conv",
                    {f32({2, 3, 9, 9}), f32({8, 3, 3, 3}), f32({8})},
                    {{"pads", Ints{0, 0, 1, 1}}, {"strides", Ints{2, 2}}}});
  expect_agreement(
      {"conv", {f32({2, 3, 5, 6, 7}), f32({8, 3, 3, 3, 3})}, {{"pads", Ints{1, 1, 1, 1, 1, 1}}}});
  expect_agreement({"conv_grad_weight",
                    {f32({2, 4, 20}), f32({2, 6, 20})},
                    {{"pads", Ints{1, 1}}, {"shape", Ints{6, 4, 3}}, {"bias", std::int64_t{1}}}});
}

TEST(CudaKernels, NameTheOperatorTheyDoNotHave) {
  const Built built = [] {
    Random random(1);
    return build({"relu", {{{ir::DType::kF8E4M3, {4}, {}}}}}, random);
  }();
  const auto kernel = cuda::make_cuda_kernel(built.graph, NodeId(0), {});
  ASSERT_FALSE(kernel.has_value());
  EXPECT_NE(kernel.error().message.find("relu"), std::string::npos) << kernel.error().message;
}

}  // namespace
}  // namespace plimsoll::kernels
