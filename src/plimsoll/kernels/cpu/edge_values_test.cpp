// Every kernel of the table on the values that ordinary tests leave out (testing/edge_examples.h),
// and on empty tensors. The definition's reference evaluation is the verifier.
//
// The test walks the table itself, so a kernel without an example fails it.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/kernels/testing/edge_examples.h"
#include "plimsoll/ops/evaluation/evaluate_call.h"

namespace plimsoll::kernels {
namespace {

using ir::Attributes;
using ir::Ints;

Differential emptied(Differential d) {
  const auto empty = [](std::int64_t extent) {
    return extent == edge::kEmptied || extent == edge::kIntegers || extent == edge::count_of_edges()
               ? 0
               : extent;
  };
  for (Tensor& tensor : d.inputs) {
    tensor.values.clear();
    for (int axis = 0; axis < tensor.type.shape.rank(); ++axis)
      tensor.type.shape[axis] = empty(tensor.type.shape[axis]);
  }
  for (const char* name : {"shape", "ends"}) {
    if (!d.attributes.has(name)) continue;
    Ints extents = d.attributes.integers(name);
    for (std::int64_t& extent : extents) extent = empty(extent);
    d.attributes.set(name, extents);
  }
  d.may_fall_back = true;
  return d;
}

Differential in_bf16(Differential d) {
  for (Tensor& tensor : d.inputs) {
    if (tensor.type.dtype == ir::DType::kF32) tensor.type.dtype = ir::DType::kBF16;
  }
  d.tolerance = 1e-2;
  d.may_fall_back = true;
  return d;
}

// The definition refuses the largest of nothing, so there is no result to compare.
bool has_no_extreme(const Differential& d) {
  if (d.op != "reduce_max" && d.op != "reduce_min") return false;
  const Ints axes = d.attributes.integers("axes");
  const bool refused = std::any_of(axes.begin(), axes.end(), [&](std::int64_t axis) {
    return d.inputs[0].type.shape[static_cast<int>(axis)] == 0;
  });
  if (refused) {
    EXPECT_FALSE(ops::infer_call(d.op, {d.inputs[0].type}, d.attributes));
  }
  return refused;
}

class EdgeValues : public ::testing::TestWithParam<std::string> {};

TEST_P(EdgeValues, GiveWhatTheReferenceGives) {
  static const edge::Examples kExamples = edge::all_examples();
  const auto place = kExamples.find(GetParam());
  ASSERT_NE(place, kExamples.end()) << "the kernel of " << GetParam() << " has no example here";
  for (Differential d : place->second.alone) {
    d.each_alone = true;
    expect_agreement(d);
    if (d.op != "bit_cast") expect_agreement(in_bf16(d));
    expect_agreement(emptied(d));
  }
  for (const Differential& given : place->second.together) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Differential d = given;
      for (std::size_t i = 0; i < d.inputs.size(); ++i) {
        Tensor& tensor = d.inputs[i];
        if (tensor.type.dtype == ir::DType::kF32 && tensor.values.empty())
          tensor = edge::mixed(tensor, 10 * seed + i);
      }
      expect_agreement(d);
    }
    const Differential empty = emptied(given);
    if (has_no_extreme(empty)) continue;
    expect_agreement(empty);
  }
}

// Exporters hide with the least float: a row that is hidden everywhere sees everything alike,
// forward and backward.
TEST(AttentionEdges, ARowThatAFiniteMaskHidesEverywhereIsStillNormalised) {
  const Attributes how{{"heads", std::int64_t{2}}};
  for (const double hidden : {-1e4, -3.4e38, -edge::kMost, -edge::kInf}) {
    SCOPED_TRACE(hidden);
    Tensor qkv = f32({2, 9, 48});
    Tensor mask = f32({9, 9});
    Random random(5);
    for (int i = 0; i < 2 * 9 * 48; ++i) qkv.values.push_back(2 * random.uniform() - 1);
    for (int row = 0; row < 9; ++row)
      mask.values.insert(mask.values.end(), 9, row % 2 == 0 ? hidden : 0.0);
    ops::Array x = ops::Array::of_reals({2, 9, 48}, qkv.values, ir::DType::kF32);
    ops::Array m = ops::Array::of_reals({9, 9}, mask.values, ir::DType::kF32);
    x.round();
    m.round();
    const double tolerance = hidden == -1e4 ? 1e-3 : 2e-5;  // scores near it have steps of 1e-3
    expect_agreement(
        {.op = "attention_qkv", .inputs = {qkv, mask}, .attributes = how, .tolerance = tolerance});
    const auto forward = ops::evaluate_call("attention_qkv", {x, m}, how);
    ASSERT_TRUE(forward) << forward.error().message;
    Tensor y = f32({2, 9, 16});
    y.values = (*forward)[0].reals;
    Tensor lse = f32({2, 2, 9});
    lse.values = (*forward)[1].reals;
    Tensor dy = f32({2, 9, 16});
    dy.values = {1};
    expect_agreement({.op = "attention_qkv_grad",
                      .inputs = {dy, qkv, y, lse, mask},
                      .attributes = how,
                      .tolerance = tolerance});
    const auto gradient = ops::evaluate_call(
        "attention_qkv_grad",
        {ops::Array::of_reals({2, 9, 16}, std::vector<double>(288, 1), ir::DType::kF32), x,
         (*forward)[0], (*forward)[1], m},
        how);
    ASSERT_TRUE(gradient) << gradient.error().message;
    // With dy = 1 every row hands its whole probability to dv: 1 where it sees anything.
    double handed = 0;
    for (std::size_t i = 0; i < 2 * 9 * 48; ++i)
      handed += i % 48 >= 32 ? (*gradient)[0].reals[i] : 0;
    EXPECT_NEAR(handed, 2 * 16 * (hidden == -edge::kInf ? 4 : 9), 1e-3);
  }
}

std::vector<std::string> operators() {
  std::set<std::string> out;
  for (const TableEntry& entry : cpu_table()) out.emplace(entry.op);
  return {out.begin(), out.end()};
}

INSTANTIATE_TEST_SUITE_P(Table, EdgeValues, ::testing::ValuesIn(operators()),
                         [](const auto& tested) { return tested.param; });

TEST(EdgeExamples, AreGivenForKernelsThatExist) {
  const std::vector<std::string> known = operators();
  for (const auto& [op, example] : edge::all_examples())
    EXPECT_TRUE(std::binary_search(known.begin(), known.end(), op)) << op;
}

}  // namespace
}  // namespace plimsoll::kernels
