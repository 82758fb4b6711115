#include "plimsoll/rewrite/pad_rows.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

struct LossHead {
  std::int64_t classes = 1001;
  std::int64_t rows = 1024;
  ir::DType dtype = ir::DType::kBF16;
  bool outputs_logits = false;
  bool another_reader = false;
};

// A last layer with its loss and the gradients of both.
ir::Graph loss_head(const LossHead& how) {
  Builder b("head");
  const Var x = b.input("x", {how.dtype, {how.rows, 32}});
  const Var w = b.weight("w", {how.dtype, {how.classes, 32}}, {});
  const Var labels = b.input("labels", {ir::DType::kI64, {how.rows}});
  const Var logits = linear(x, w, {}, {.trans_w = true});
  const auto loss = cross_entropy(logits, labels);
  b.set_phase(ir::Phase::kBackward);
  const Var one = fill(b, {ir::DType::kF32, {}}, 1);
  const Var slopes = b.call1("cross_entropy_grad", {one, logits, labels, loss.lse});
  std::vector<Var> outputs{loss.loss, linear(slopes, w, {}, {}),
                           linear_grad_weight(x, slopes, {.trans_w = true}, false).dw};
  if (how.outputs_logits) outputs.push_back(logits);
  if (how.another_reader) outputs.push_back(neg(logits));
  auto graph = b.finish(outputs);
  EXPECT_TRUE(graph) << graph.error().message;
  return *graph;
}

int padded_values(const ir::Graph& graph) {
  int out = 0;
  for (const ir::Value& value : graph.values) {
    if (value.type.layout.is_row_major()) continue;
    EXPECT_EQ(ir::to_string(value.type.layout), "@01:64b1");
    ++out;
  }
  return out;
}

TEST(PadRows, PadsLogitsAndTheirGradient) {
  const ir::Graph before = loss_head({});
  const auto after = pad_rows(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(padded_values(*after), 2);
  EXPECT_EQ(after->nodes, before.nodes);
  EXPECT_EQ(without_padded_rows(*after), before);
  // 1,001 elements become 1,024.
  for (const ir::Value& value : after->values) {
    if (value.type.layout.is_row_major()) continue;
    EXPECT_EQ(ir::bytes_of(value.type), Bytes(1024 * 1024 * 2));
  }
}

TEST(PadRows, KeepsWhatOthersSee) {
  EXPECT_EQ(padded_values(*pad_rows(loss_head({.outputs_logits = true}))), 0);
  EXPECT_EQ(padded_values(*pad_rows(loss_head({.another_reader = true}))), 0);
}

TEST(PadRows, KeepsGoodAndSmallRows) {
  EXPECT_EQ(padded_values(*pad_rows(loss_head({.classes = 1008}))), 0);
  EXPECT_EQ(padded_values(*pad_rows(loss_head({.rows = 8}))), 0);
  EXPECT_EQ(padded_values(*pad_rows(loss_head({.classes = 1004, .dtype = ir::DType::kF32}))), 0);
  EXPECT_EQ(padded_values(*pad_rows(loss_head({.classes = 1004}))), 2);
}

}  // namespace
}  // namespace plimsoll::rewrite
