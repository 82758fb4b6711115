#include "plimsoll/model/onnx/convert/quantized_numbers.h"

#include <gtest/gtest.h>

#include <limits>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll::model::onnx {
namespace {

std::vector<std::int64_t> quantized_bytes(std::vector<double> numbers, std::int64_t zero_point,
                                          ir::DType dtype) {
  ops::Builder b("quantized");
  const auto count = static_cast<std::int64_t>(numbers.size());
  ops::Array x({ir::DType::kF32, {count}, {}});
  x.reals = std::move(numbers);
  ops::Array scale({ir::DType::kF32, {}, {}});
  scale.set_number(0, 0.5);
  ops::Array zero({dtype, {}, {}});
  zero.set_number(0, static_cast<double>(zero_point));
  const ops::Var y =
      quantized(b.constant("x", x), b.constant("scale", scale), b.constant("zero", zero), dtype);
  const auto graph = b.finish({y});
  EXPECT_TRUE(graph) << graph.error().message;
  const auto values = ops::interpret(*graph, {});
  EXPECT_TRUE(values) << values.error().message;
  return (*values)[graph->outputs.front().index()]->integers;
}

TEST(QuantizedNumbers, RoundToEvenAndStayInRange) {
  EXPECT_EQ(quantized_bytes({0.25, 0.75, -1.0, 1e9, -1e9}, 3, ir::DType::kI8),
            (std::vector<std::int64_t>{3, 5, 1, 127, -128}));
}

TEST(QuantizedNumbers, NanBecomesTheLowest) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(quantized_bytes({nan, 1}, -128, ir::DType::kI8),
            (std::vector<std::int64_t>{-128, -126}));
  EXPECT_EQ(quantized_bytes({nan, 1}, 7, ir::DType::kU8), (std::vector<std::int64_t>{0, 9}));
}

}  // namespace
}  // namespace plimsoll::model::onnx
