#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/ops/registry.h"

namespace plimsoll::ops {
namespace {

using ir::DType;
using ir::Ints;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<View> views(std::string_view op, const std::vector<TensorType>& inputs,
                        const ir::Attributes& attributes) {
  std::vector<const TensorType*> types;
  for (const TensorType& type : inputs) types.push_back(&type);
  const OpDefinition* definition = find_definition(op);
  const Call call(types, definition->read(attributes));
  const auto outputs = definition->infer(call);
  EXPECT_TRUE(outputs.has_value());
  return definition->views(call, *outputs);
}

ir::Attributes range(Ints starts, Ints ends, Ints steps) {
  return {{"starts", starts}, {"ends", ends}, {"steps", steps}};
}

TEST(Views, AReshapeLiesInItsInput) {
  EXPECT_THAT(views("reshape", {{DType::kF32, {2, 3}}}, {{"shape", Ints{6}}}),
              ElementsAre(View{0, 0, Bytes(0), false}));
}

TEST(Views, ASliceOfTheOuterAxisIsOneRunOfBytes) {
  const TensorType x{DType::kF32, {4, 6}};
  EXPECT_THAT(views("slice", {x}, range({1, 0}, {3, 6}, {1, 1})),
              ElementsAre(View{0, 0, Bytes(24), false}));
  EXPECT_THAT(views("slice", {x}, range({2, 1}, {3, 4}, {1, 1})),
              ElementsAre(View{0, 0, Bytes(52), false}));
  EXPECT_THAT(views("slice", {x}, range({0, 1}, {4, 4}, {1, 1})), IsEmpty());
  EXPECT_THAT(views("slice", {x}, range({0, 0}, {4, 6}, {2, 1})), IsEmpty());
  EXPECT_THAT(views("slice", {x}, range({3, 0}, {-1, 6}, {-1, 1})), IsEmpty());
  EXPECT_THAT(views("slice", {x}, range({1, 0}, {1, 6}, {1, 1})), IsEmpty());
}

TEST(Views, ASliceOfChannelsThatLieInnermostIsNone) {
  const ir::Attributes channels = range({0, 1, 0, 0}, {1, 3, 5, 5}, {1, 1, 1, 1});
  TensorType x{DType::kF32, {1, 4, 5, 5}};
  EXPECT_THAT(views("slice", {x}, channels), ElementsAre(View{0, 0, Bytes(100), false}));
  x.layout = ir::Layout::channels_last(4);
  EXPECT_THAT(views("slice", {x}, channels), IsEmpty());
}

// [N, C, H, W] channels last and [N, H, W, C] are the same bytes; an axis of one place lies
// anywhere.
TEST(Views, ATranspositionThatMovesNothingLiesInItsInput) {
  const View whole{0, 0, Bytes(0), false};
  const ir::Attributes channels_to_the_end{{"perm", Ints{0, 2, 3, 1}}};
  TensorType x{DType::kF32, {2, 4, 5, 3}};
  EXPECT_THAT(views("transpose", {x}, channels_to_the_end), IsEmpty());
  x.layout = ir::Layout::channels_last(4);
  EXPECT_THAT(views("transpose", {x}, channels_to_the_end), ElementsAre(whole));
  EXPECT_THAT(views("transpose", {x}, {{"perm", Ints{0, 3, 1, 2}}}), IsEmpty());
  EXPECT_THAT(views("transpose", {{DType::kF32, {1, 4, 1, 3}}}, {{"perm", Ints{1, 0, 3, 2}}}),
              ElementsAre(whole));
}

TEST(Views, AReorderThatMovesNothingLiesInItsInput) {
  const ir::Attributes last{{"layout", ir::to_string(ir::Layout::channels_last(4))}};
  EXPECT_THAT(views("reorder", {{DType::kF32, {2, 4, 5, 3}}}, last), IsEmpty());
  EXPECT_THAT(views("reorder", {{DType::kF32, {2, 4, 1, 1}}}, last),
              ElementsAre(View{0, 0, Bytes(0), false}));
  EXPECT_THAT(views("reorder", {{DType::kF32, {2, 16, 1, 1}}}, {{"layout", "@0123:16b1"}}),
              IsEmpty());
}

TEST(Views, ElementsNarrowerThanAByteNeedAWholeByteToBeginAt) {
  const TensorType x{DType::kI4, {8}};
  EXPECT_THAT(views("slice", {x}, range({2}, {8}, {1})), ElementsAre(View{0, 0, Bytes(1), false}));
  EXPECT_THAT(views("slice", {x}, range({1}, {8}, {1})), IsEmpty());
}

TEST(Views, PartsOfASplitLieInItsInput) {
  const ir::Attributes how{{"axis", std::int64_t{1}}, {"sizes", Ints{1, 2}}};
  EXPECT_THAT(views("split", {{DType::kF32, {1, 3, 5}}}, how),
              ElementsAre(View{0, 0, Bytes(0), false}, View{1, 0, Bytes(20), false}));
  EXPECT_THAT(views("split", {{DType::kF32, {2, 3, 5}}}, how), IsEmpty());
}

TEST(Views, InputsOfAConcatLieInItsOutput) {
  const ir::Attributes axis{{"axis", std::int64_t{0}}};
  EXPECT_THAT(views("concat", {{DType::kF16, {2, 3}}, {DType::kF16, {1, 3}}}, axis),
              ElementsAre(View{0, 0, Bytes(0), true}, View{0, 1, Bytes(12), true}));
}

}  // namespace
}  // namespace plimsoll::ops
