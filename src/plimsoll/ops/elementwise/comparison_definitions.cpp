#include <functional>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/binary_evaluation.h"
#include "plimsoll/ops/elementwise/binary_formulas.h"
#include "plimsoll/ops/elementwise/comparison.h"
#include "plimsoll/ops/reduction/reduction.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_comparison(const Call& call) {
  PLIMSOLL_TRY(std::vector<TensorType> out, broadcast_all(call));
  out[0].dtype = ir::DType::kBool;
  return out;
}

Result<std::vector<TensorType>> infer_logical(const Call& call) {
  for (int i = 0; i < call.size(); ++i) {
    if (call.type(i).dtype != ir::DType::kBool) {
      return bad_input("input {} is {}, expects bool", i, ir::name(call.type(i).dtype));
    }
  }
  return broadcast_all(call);
}

Result<std::vector<TensorType>> infer_where(const Call& call) {
  if (call.type(0).dtype != ir::DType::kBool) {
    return bad_input("the condition is {}, expects bool", ir::name(call.type(0).dtype));
  }
  PLIMSOLL_TRY(std::vector<TensorType> out,
               broadcast_all(Call({&call.type(1), &call.type(2)}, call.attributes())));
  const auto shape = ir::broadcast(out[0].shape, call.shape(0));
  if (!shape) {
    return bad_input("the condition's shape {} does not broadcast with {}",
                     ir::to_string(call.shape(0)), ir::to_string(out[0].shape));
  }
  if (*shape != out[0].shape) out[0].layout = call.type(0).layout;
  out[0].shape = *shape;
  if (!ir::fits(out[0].layout, *shape)) out[0].layout = {};
  return out;
}

void evaluate_logical_not(const Evaluation& e) {
  for (std::size_t i = 0; i < e.out().integers.size(); ++i) {
    e.out().integers[i] = e.in(0).integers[i] == 0;
  }
}

// Two passes of a two-operand broadcast: first what a says, then what b says where c is false.
void evaluate_where(const Evaluation& e) {
  Array& y = e.out();
  for (const int source : {1, 2}) {
    const Array& from = e.in(source);
    for_each_broadcast(y.type.shape, e.in(0).type.shape, from.type.shape,
                       [&](std::int64_t i, std::int64_t c, std::int64_t j) {
                         const bool holds = e.in(0).integers[static_cast<std::size_t>(c)] != 0;
                         if (holds == (source == 1)) y.copy_element(i, from, j);
                       });
  }
}

std::vector<Var> where_gradient(const Backward& g) {
  const Var zero = number(g.dy(), 0);
  return {Var(), g.wants(1) ? sum_to(where(g.in(0), g.dy(), zero), g.in(1).shape()) : Var(),
          g.wants(2) ? sum_to(where(g.in(0), zero, g.dy()), g.in(2).shape()) : Var()};
}

OpDefinition comparison_definition(std::string_view name, InferRule infer, int inputs,
                                   InPlace in_place, EvaluateRule evaluate) {
  return elementwise_definition(name, inputs, infer, Gradient::none(), std::move(in_place),
                                evaluate);
}

OpDefinition compare(std::string_view name, EvaluateRule evaluate) {
  return comparison_definition(name, infer_comparison, 2, InPlace::never(), evaluate);
}

OpDefinition logic(std::string_view name, EvaluateRule evaluate) {
  return comparison_definition(name, infer_logical, 2, InPlace::over_any_of({{0, 0}, {0, 1}}),
                               evaluate);
}

}  // namespace

std::vector<OpDefinition> comparison_definitions() {
  return {
      compare("equal", evaluate_by_order<std::equal_to<>>),
      compare("less", evaluate_by_order<std::less<>>),
      compare("less_equal", evaluate_by_order<std::less_equal<>>),
      compare("greater", evaluate_by_order<std::greater<>>),
      compare("greater_equal", evaluate_by_order<std::greater_equal<>>),
      logic("logical_and", evaluate_by_order<LogicalAnd>),
      logic("logical_or", evaluate_by_order<LogicalOr>),
      logic("logical_xor", evaluate_by_order<LogicalXor>),
      comparison_definition("logical_not", infer_logical, 1, InPlace::over(0),
                            evaluate_logical_not),
      elementwise_definition("where", 3, infer_where, Gradient(where_gradient),
                             InPlace::over_any_of({{0, 1}, {0, 2}}), evaluate_where),
  };
}

}  // namespace plimsoll::ops
