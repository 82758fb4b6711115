#include "plimsoll/runtime/initial_content.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "plimsoll/runtime/layout_copy.h"

namespace plimsoll::runtime {
namespace {

std::vector<std::byte> filled(const ir::Value& value, std::uint64_t seed, std::uint64_t step) {
  std::vector<std::byte> out(static_cast<std::size_t>(ir::bytes_of(value.type).value));
  fill_source(value, seed, step, out);
  return out;
}

ir::Value weight(std::string name, ir::DType dtype, ir::Shape shape, ir::Init init,
                 ir::ValueKind kind = ir::ValueKind::kWeight) {
  ir::Value value;
  value.name = std::move(name);
  value.type = {dtype, shape, {}};
  value.init = init;
  value.kind = kind;
  return value;
}

TEST(FillSource, DependsOnSeedAndNameOnly) {
  const ir::Init normal{ir::Init::Kind::kNormal, 0, 0.02};
  const ir::Value a = weight("a", ir::DType::kF32, {300, 500}, normal);
  EXPECT_EQ(filled(a, 1, 0), filled(a, 1, 9));
  EXPECT_NE(filled(a, 1, 0), filled(a, 2, 0));
  EXPECT_NE(filled(a, 1, 0), filled(weight("b", ir::DType::kF32, {300, 500}, normal), 1, 0));
}

TEST(FillSource, NormalHasItsMoments) {
  const ir::Value value =
      weight("w", ir::DType::kF32, {200000}, {ir::Init::Kind::kNormal, 1.0, 0.5});
  const auto bytes = filled(value, 3, 0);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 200000; ++i) {
    float x = 0;
    std::memcpy(&x, bytes.data() + 4 * i, 4);
    sum += x;
    squares += (x - 1.0) * (x - 1.0);
  }
  EXPECT_NEAR(sum / 200000, 1.0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / 200000), 0.5, 0.01);
}

TEST(FillSource, IntegerInputsStayInRangeAndChangeWithTheStep) {
  const ir::Value tokens = weight("tokens", ir::DType::kI64, {1000},
                                  {ir::Init::Kind::kUniform, 0, 17}, ir::ValueKind::kInput);
  const auto bytes = filled(tokens, 1, 0);
  for (int i = 0; i < 1000; ++i) {
    std::int64_t token = -1;
    std::memcpy(&token, bytes.data() + 8 * i, 8);
    ASSERT_GE(token, 0);
    ASSERT_LT(token, 17);
  }
  EXPECT_NE(bytes, filled(tokens, 1, 1));
}

TEST(FillSource, IsTheSameInEveryLayout) {
  ir::Layout blocked = ir::Layout::channels_last(4);
  blocked.order = {0, 1, 2, 3};
  blocked.blocks[0] = {1, 8};
  blocked.block_count = 1;
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kI64, ir::DType::kU8}) {
    for (const ir::Layout& layout : {ir::Layout::channels_last(4), blocked}) {
      ir::Value value = weight("w", dtype, {3, 5, 60, 90}, {ir::Init::Kind::kUniform, 0, 100});
      const std::vector<std::byte> plain = filled(value, 1, 0);
      value.type.layout = layout;
      std::vector<std::byte> expected(static_cast<std::size_t>(ir::bytes_of(value.type).value));
      copy_from_row_major(value.type, plain, expected);
      EXPECT_EQ(filled(value, 1, 0), expected) << ir::to_string(value.type);
    }
  }
}

// Rows are such that parts begin and end inside chunks, and pieces of a chunk.
TEST(FillSource, PartsOfABatchAreTheBatch) {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kF64, ir::DType::kI64}) {
    const ir::Init init{ir::Init::Kind::kUniform, 0, 100};
    const ir::Value whole = weight("x", dtype, {6, 30001}, init, ir::ValueKind::kInput);
    const ir::Value third = weight("x", dtype, {2, 30001}, init, ir::ValueKind::kInput);
    std::vector<std::byte> joined;
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<std::byte> part(static_cast<std::size_t>(ir::bytes_of(third.type).value));
      fill_source(third, 1, 5, part, {rank, 3});
      joined.insert(joined.end(), part.begin(), part.end());
    }
    EXPECT_EQ(joined, filled(whole, 1, 5)) << ir::name(dtype);
  }
}

TEST(FillSource, WeightsAreNotParted) {
  const ir::Value w = weight("w", ir::DType::kF32, {50}, {ir::Init::Kind::kNormal, 0, 1});
  std::vector<std::byte> part(200);
  fill_source(w, 1, 0, part, {1, 2});
  EXPECT_EQ(part, filled(w, 1, 0));
}

TEST(FillSource, EmptySourceIsFine) {
  EXPECT_TRUE(filled(weight("e", ir::DType::kF32, {0, 4}, {}), 1, 0).empty());
}

}  // namespace
}  // namespace plimsoll::runtime
