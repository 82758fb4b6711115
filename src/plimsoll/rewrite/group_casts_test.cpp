#include "plimsoll/rewrite/group_casts.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/testing/random_sources.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

TEST(GroupCasts, SixteenWeightsAreCastAtOnce) {
  Builder b("casts");
  const Var x = b.input("x", {ir::DType::kF32, {3}});
  std::vector<Var> outputs{neg(cast(x, ir::DType::kBF16))};
  for (int i = 0; i < 35; ++i) {
    const Var w = b.weight(fmt::format("w{}", i), {ir::DType::kF32, {i + 1}}, {});
    outputs.push_back(neg(cast(w, ir::DType::kBF16)));
  }
  const ir::Graph before = *b.finish(outputs);
  const auto after = group_casts(before);
  ASSERT_TRUE(after) << after.error().message;
  int groups = 0;
  int alone = 0;
  for (const ir::Node& node : after->nodes) {
    groups += node.op == "cast_group";
    alone += node.op == "cast";
  }
  EXPECT_EQ(groups, 2);
  EXPECT_EQ(alone, 4);  // three that fill no group, and that of the input
  const auto sources = normal_sources(before, 11);
  const auto wanted = ops::interpret(before, sources);
  const auto got = ops::interpret(*after, sources);
  ASSERT_TRUE(wanted && got);
  for (std::size_t o = 0; o < before.outputs.size(); ++o) {
    EXPECT_EQ((*wanted)[before.outputs[o].index()]->reals, (*got)[after->outputs[o].index()]->reals)
        << o;
  }
}

}  // namespace
}  // namespace plimsoll::rewrite
