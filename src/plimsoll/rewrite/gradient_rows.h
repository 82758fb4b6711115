// Some rows of a large gradient, made without the rest of it.
//
// The gradient of GPT-2's table of tokens is 147 MiB, and whole from the beginning of the backward
// pass to its end, because the table is read first and last:
//
//   dw = linear_grad_weight(h, dlogits)  ...  dw' = gather_grad(dx, ids, dw)  ─▶ scatter_sums
//
// Ranks that share state only want the sums of their part. So the chain is made again for a few
// rows at a time, which are sent and gone before the next are made:
//
//   dlogitsᵣ = slice(dlogits)     columns r
//   dwᵣ  = linear_grad_weight(h, dlogitsᵣ)
//   dw'ᵣ = gather_grad(dx, ids, dwᵣ) {rows}  ─▶ scatter_sums
//
// Casts hand the question on to what they read; whatever has no rule gives a slice of the whole.
// Nothing is computed twice: what only the whole read is dead then.
//
// When. h and dlogits must live until the rows are wanted. Where they are larger than the gradient,
// its products are made where they were, in pieces that go one by one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

class GradientRows {
 public:
  struct NewNode {
    std::optional<NodeId> behind;  // which node it stands; nothing: where the rows are wanted
    std::string_view op;
    std::vector<ValueId> inputs;
    ir::Attributes attributes;
    std::string layer;
  };
  using AddNode = std::function<Result<ValueId>(NewNode)>;

  // `graph` may grow meanwhile; `readers` and `outputs` are those of the values it has now.
  // `table_rows`: kernels know `rows` of gather_grad.
  GradientRows(const ir::Graph& graph, const std::vector<std::vector<NodeId>>& readers,
               const std::vector<bool>& outputs, bool table_rows)
      : graph_(graph), readers_(readers), outputs_(outputs), table_rows_(table_rows) {}

  // Rows need not be cut out of the whole.
  bool can_make(ValueId gradient) const;
  Result<ValueId> make(ValueId gradient, Interval<std::int64_t> rows, const AddNode& add) const;

 private:
  const ir::Node* rule_for(ValueId gradient) const;
  Result<ValueId> slice(ValueId value, int axis, Interval<std::int64_t> range,
                        std::optional<NodeId> behind, const AddNode& add) const;
  Result<ValueId> product(ValueId gradient, const ir::Node& node, Interval<std::int64_t> rows,
                          const AddNode& add) const;

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>>& readers_;
  const std::vector<bool>& outputs_;
  bool table_rows_;
};

}  // namespace plimsoll::rewrite
