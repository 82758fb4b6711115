// Data sets in files: which examples a step sees, casts, and what is refused.
#include "plimsoll/runtime/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "plimsoll/ops/functions.h"
#include "plimsoll/runtime/on_demand.h"

namespace plimsoll::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Takes two examples x[2], y at once.
std::unique_ptr<Executor> executor_of_two() {
  ops::Builder b("two");
  const ops::Var x = b.input("x", {ir::DType::kF32, {2, 2}, {}});
  const ops::Var y = b.input("y", {ir::DType::kI64, {2}, {}});
  const ops::Var table = b.weight("table", {ir::DType::kF32, {100, 2}, {}}, {});
  const ir::Graph graph = *b.finish({x + ops::gather(table, y, 0)});
  return std::move(*make_on_demand(graph, {.threads = 1}));
}

template <typename T>
store::NamedTensor array(const std::string& name, ir::DType dtype, const ir::Shape& shape,
                         const std::vector<T>& numbers) {
  store::NamedTensor out{name, {dtype, shape, {}}, {}};
  out.bytes.resize(numbers.size() * sizeof(T));
  std::memcpy(out.bytes.data(), numbers.data(), out.bytes.size());
  return out;
}

// Example i is x = [i, -i], y = i.
void write_examples(const fs::path& file, std::int64_t first, std::int64_t count) {
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (std::int64_t i = first; i < first + count; ++i) {
    x.insert(x.end(), {static_cast<float>(i), static_cast<float>(-i)});
    y.push_back(i);
  }
  ASSERT_TRUE(store::write_npz(file, std::vector{array("x", ir::DType::kF32, {count, 2}, x),
                                                 array("y", ir::DType::kI64, {count}, y)}));
}

class Datasets : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "plimsoll_datasets";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The examples of a step, by y; x has to agree.
  static std::vector<std::int64_t> step(Dataset& data, Executor& executor, int number) {
    const Status fed = data.feed(executor, number);
    EXPECT_TRUE(fed) << fed.error().message;
    std::array<float, 4> x{};
    std::vector<std::int64_t> y(2);
    std::memcpy(x.data(), executor.read(ValueId(0u)).value().data(), sizeof x);
    std::memcpy(y.data(), executor.read(ValueId(1u)).value().data(), 16);
    for (std::size_t row = 0; row < 2; ++row) {
      EXPECT_EQ(x[2 * row], static_cast<float>(y[row]));
      EXPECT_EQ(x[2 * row + 1], static_cast<float>(-y[row]));
    }
    return y;
  }

  static std::string refusal(const std::string& path) {
    auto data = Dataset::open(path);
    if (!data) return data.error().message;
    const auto executor = executor_of_two();
    const Status bound = data->bind(executor->graph());
    if (!bound) return bound.error().message;
    const Status fed = data->feed(*executor, 0);
    return fed ? "" : fed.error().message;
  }

  fs::path folder_;
};

TEST_F(Datasets, AreReadInOrderAndTheLastBatchIsFilledUp) {
  write_examples(folder_ / "a.npz", 0, 5);
  auto data = *Dataset::open((folder_ / "a.npz").string());
  const auto executor = executor_of_two();
  ASSERT_TRUE(data.bind(executor->graph()));
  EXPECT_TRUE(data.has_batches());
  EXPECT_EQ(data.examples(), 5);
  EXPECT_EQ(data.steps_per_epoch(), 3);
  EXPECT_EQ(step(data, *executor, 0), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(step(data, *executor, 2), (std::vector<std::int64_t>{4, 4}));
}

TEST_F(Datasets, AreShuffledAnewEveryEpochAndSeeEveryExampleOnceInEach) {
  write_examples(folder_ / "a.npz", 0, 4);
  write_examples(folder_ / "b.npz", 4, 3);
  (void)std::ofstream(folder_ / "readme.txt").put('x');
  auto data = *Dataset::open(folder_.string());
  data.shuffle_by(7);
  const auto executor = executor_of_two();
  ASSERT_TRUE(data.bind(executor->graph()));
  ASSERT_EQ(data.examples(), 7);
  std::vector<std::int64_t> seen;
  for (int number = 0; number < 14; ++number) {
    for (const std::int64_t example : step(data, *executor, number)) seen.push_back(example);
  }
  std::set<std::vector<std::int64_t>> orders;
  for (std::size_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::int64_t> one(seen.begin() + static_cast<std::ptrdiff_t>(7 * epoch),
                                  seen.begin() + static_cast<std::ptrdiff_t>(7 * epoch + 7));
    orders.insert(one);
    std::sort(one.begin(), one.end());
    EXPECT_EQ(one, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6})) << "epoch " << epoch;
  }
  EXPECT_EQ(orders.size(), 4U);
  // A step is the same whatever came before it: a resumed run goes on.
  EXPECT_EQ(step(data, *executor, 3), (std::vector<std::int64_t>{seen[6], seen[7]}));
}

TEST_F(Datasets, OtherTypesAreCastWhereNothingIsLost) {
  const fs::path file = folder_ / "a.npz";
  ASSERT_TRUE(store::write_npz(
      file, std::vector{array<double>("x", ir::DType::kF64, {3, 2}, {0, 0, 1, -1, 2, -2}),
                        array<std::uint8_t>("y", ir::DType::kU8, {3}, {0, 1, 2})}));
  auto data = *Dataset::open(file.string());
  const auto executor = executor_of_two();
  ASSERT_TRUE(data.bind(executor->graph()));
  EXPECT_EQ(step(data, *executor, 0), (std::vector<std::int64_t>{0, 1}));
  ASSERT_TRUE(store::write_npz(
      file, std::vector{array<float>("x", ir::DType::kF32, {3, 2}, {0, 0, 1, -1, 2, -2}),
                        array<float>("y", ir::DType::kF32, {3}, {0, 0.5, 2})}));
  EXPECT_THAT(refusal(file.string()), HasSubstr("example 1: input 'y': 0.5 is no int64"));
}

TEST_F(Datasets, WhatDoesNotFitIsNamed) {
  const fs::path file = folder_ / "a.npz";
  write_examples(file, 99, 3);
  EXPECT_THAT(refusal(file.string()),
              HasSubstr("a.npz, example 1: input 'y': element [1] is 100; gather takes 0 to 99"));
  write_examples(file, 0, 1);
  EXPECT_THAT(refusal(file.string()), HasSubstr("has 1 examples, a step takes 2"));
  write_examples(file, 0, 2);
  EXPECT_EQ(refusal(file.string()), "");
  ASSERT_TRUE(store::write_npz(
      file, std::vector{array<float>("x", ir::DType::kF32, {3, 2}, {0, 0, 1, -1, 2, -2})}));
  EXPECT_THAT(refusal(file.string()), HasSubstr("input 'y' is not in it; it has 'x'"));
  ASSERT_TRUE(store::write_npz(
      file, std::vector{array<float>("x", ir::DType::kF32, {3, 2}, {0, 0, 1, -1, 2, -2}),
                        array<std::int64_t>("y", ir::DType::kI64, {4}, {0, 1, 2, 3})}));
  EXPECT_THAT(refusal(file.string()), HasSubstr("'y' has 4 examples, another array 3"));
  ASSERT_TRUE(store::write_npz(
      file, std::vector{array<float>("x", ir::DType::kF32, {2, 3}, {0, 0, 1, -1, 2, -2}),
                        array<std::int64_t>("y", ir::DType::kI64, {2}, {0, 1})}));
  EXPECT_THAT(refusal(file.string()), HasSubstr("the file has fp32[2,3], the model expects"));
  fs::remove(file);
  EXPECT_THAT(refusal(folder_.string()), HasSubstr("a folder without .npz files"));
}

TEST_F(Datasets, RowsOfAnotherShapeAreRefusedWithWhatToDo) {
  const fs::path file = folder_ / "a.npz";
  const auto with_y = [&](std::initializer_list<std::int64_t> shape) {
    const ir::Shape of(shape);
    const std::vector<std::int64_t> values(static_cast<std::size_t>(of.elements()));
    EXPECT_TRUE(store::write_npz(
        file, std::vector{array<float>("x", ir::DType::kF32, {3, 2}, {0, 0, 1, -1, 2, -2}),
                          array<std::int64_t>("y", ir::DType::kI64, of, values)}));
    return refusal(file.string());
  };
  EXPECT_EQ(with_y({3}), "");
  EXPECT_THAT(with_y({3, 1}), HasSubstr("; leave out its dimensions of 1"));
  EXPECT_THAT(with_y({3, 10}), HasSubstr("; labels are numbers, not rows of one-hot"));
}

}  // namespace
}  // namespace plimsoll::runtime
