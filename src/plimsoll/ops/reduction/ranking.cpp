#include "plimsoll/ops/reduction/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/movement/indexing.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_arg(const Call& call) {
  const ir::Shape& x = call.shape(0);
  PLIMSOLL_TRY(const int axis, normal_axis(call.attributes().integer("axis"), x.rank()));
  const bool keepdims = call.attributes().integer("keepdims") != 0;
  ir::Shape out;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) out.push_back(x[i]);
    if (i == axis && keepdims) out.push_back(1);
  }
  if (x[axis] == 0 && out.elements() > 0)
    return bad_input("axis {} of {} is empty", axis, ir::to_string(x));
  return std::vector{TensorType{ir::DType::kI64, out, {}}};
}

bool is_less(const Array& x, std::int64_t a, std::int64_t b) {
  const auto i = static_cast<std::size_t>(a);
  const auto j = static_cast<std::size_t>(b);
  if (x.is_real()) {
    const bool nan_b = x.reals[j] != x.reals[j];
    return x.reals[i] < x.reals[j] || (nan_b && x.reals[i] == x.reals[i]);
  }
  if (x.type.dtype == ir::DType::kU64) {
    return static_cast<std::uint64_t>(x.integers[i]) < static_cast<std::uint64_t>(x.integers[j]);
  }
  return x.integers[i] < x.integers[j];
}

void evaluate_arg(const Evaluation& e, bool largest) {
  const Array& x = e.in(0);
  const int axis = verified_axis(e.attributes, x.type.shape);
  const bool last = e.attributes.integer("last") != 0;
  for_each_line(x.type.shape, axis,
                [&](std::int64_t line, std::int64_t first, std::int64_t stride) {
                  std::int64_t best = 0;
                  for (std::int64_t i = 1; i < x.type.shape[axis]; ++i) {
                    const std::int64_t here = first + i * stride;
                    const std::int64_t there = first + best * stride;
                    const bool better = largest ? is_less(x, there, here) : is_less(x, here, there);
                    const bool worse = largest ? is_less(x, here, there) : is_less(x, there, here);
                    if (better || (last && !worse)) best = i;
                  }
                  e.out().integers[static_cast<std::size_t>(line)] = best;
                });
}

void evaluate_argmax(const Evaluation& e) {
  evaluate_arg(e, true);
}
void evaluate_argmin(const Evaluation& e) {
  evaluate_arg(e, false);
}

Result<std::vector<TensorType>> infer_top_k(const Call& call) {
  const ir::Shape& x = call.shape(0);
  PLIMSOLL_TRY(const std::int64_t k, required_integer(call.attributes(), "k"));
  PLIMSOLL_TRY(const int axis, normal_axis(call.attributes().integer("axis"), x.rank()));
  if (k < 0 || k > x[axis]) return bad_input("k is {}, axis {} has {} elements", k, axis, x[axis]);
  ir::Shape out = x;
  out[axis] = k;
  return std::vector{TensorType{call.type(0).dtype, out, {}}, TensorType{ir::DType::kI64, out, {}}};
}

void evaluate_top_k(const Evaluation& e) {
  const Array& x = e.in(0);
  const int axis = verified_axis(e.attributes, x.type.shape);
  const bool largest = e.attributes.integer("largest") != 0;
  const std::int64_t k = e.out(0).type.shape[axis];
  std::vector<std::int64_t> order(
      static_cast<std::size_t>(x.elements() == 0 ? 0 : x.type.shape[axis]));
  for_each_line(x.type.shape, axis,
                [&](std::int64_t line, std::int64_t first, std::int64_t stride) {
                  std::iota(order.begin(), order.end(), 0);
                  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
                    const std::int64_t i = first + a * stride;
                    const std::int64_t j = first + b * stride;
                    return largest ? is_less(x, j, i) : is_less(x, i, j);
                  });
                  const std::int64_t to = line / stride * stride * k + line % stride;
                  for (std::int64_t rank = 0; rank < k; ++rank) {
                    const std::int64_t place = order[static_cast<std::size_t>(rank)];
                    e.out(0).copy_element(to + rank * stride, x, first + place * stride);
                    e.out(1).integers[static_cast<std::size_t>(to + rank * stride)] = place;
                  }
                });
}

std::vector<Var> top_k_gradient(const Backward& g) {
  const int axis = static_cast<int>(g.attributes.integer("axis"));
  return {scatter_elements(zeros_like(g.in(0)), g.out(1), g.dy(), axis, "add")};
}

// log2(extent) comparisons an element.
Cost sort_cost(const Call& call, std::span<const TensorType> outputs) {
  const int axis = verified_axis(call.attributes(), call.shape(0));
  const auto extent = static_cast<double>(std::max<std::int64_t>(call.shape(0)[axis], 2));
  return cost_with(element_count(call.shape(0)) * std::log2(extent), call, outputs);
}

OpDefinition arg_definition(std::string_view name, EvaluateRule evaluate) {
  return moving_definition(name, 1, infer_arg, Gradient::none(), evaluate, cost_per_input<1>)
      .having({attribute::integer("axis", 0), attribute::integer("keepdims", 0),
               attribute::integer("last", 0)});
}

Var arg(std::string_view op, Var x, int axis, bool keepdims, bool last) {
  return x.builder().call1(op, {x},
                           {{"axis", std::int64_t{axis}},
                            {"keepdims", std::int64_t{keepdims}},
                            {"last", std::int64_t{last}}});
}

}  // namespace

Var argmax(Var x, int axis, bool keepdims, bool last) {
  return arg("argmax", x, axis, keepdims, last);
}
Var argmin(Var x, int axis, bool keepdims, bool last) {
  return arg("argmin", x, axis, keepdims, last);
}

TopK top_k(Var x, std::int64_t k, int axis, bool largest) {
  const auto out = x.builder().call(
      "top_k", {x}, {{"k", k}, {"axis", std::int64_t{axis}}, {"largest", std::int64_t{largest}}});
  return {out[0], out[1]};
}

std::vector<OpDefinition> ranking_definitions() {
  return {
      arg_definition("argmax", evaluate_argmax),
      arg_definition("argmin", evaluate_argmin),
      {.name = "top_k",
       .inputs = exactly(1),
       .outputs = exactly(2),
       .attributes = {attribute::integer("k"), attribute::integer("axis", -1),
                      attribute::integer("largest", 1)},
       .infer = infer_top_k,
       .gradient = Gradient(top_k_gradient),
       .in_place = InPlace::never(),
       .cost = sort_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kPlain,
       .evaluate = evaluate_top_k},
  };
}

}  // namespace plimsoll::ops
