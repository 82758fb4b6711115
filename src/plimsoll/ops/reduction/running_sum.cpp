#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/reduction/reduction.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_cumsum(const Call& call) {
  const ir::DType dtype = call.type(0).dtype;
  if (dtype == ir::DType::kBool || dtype == ir::DType::kBit) {
    return bad_input("input is {}, expects numbers; cast it", ir::name(dtype));
  }
  PLIMSOLL_RETURN_IF_ERROR(normal_axis(call.attributes().integer("axis"), call.shape(0).rank()));
  return std::vector{TensorType{dtype, call.shape(0), {}}};
}

// One running sum over elements first, first + stride, ...
template <typename Number>
void accumulate(const std::vector<Number>& x, std::vector<Number>& y, std::int64_t first,
                std::int64_t stride, std::int64_t count, bool exclusive) {
  Number sum{};
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(first + i * stride);
    Number next{};
    if constexpr (std::is_integral_v<Number>) {
      next =
          static_cast<Number>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(x[at]));
    } else {
      next = sum + x[at];
    }
    y[at] = exclusive ? sum : next;
    sum = next;
  }
}

void evaluate_cumsum(const Evaluation& e) {
  const Array& x = e.in(0);
  const ir::Shape& shape = x.type.shape;
  const int axis = verified_axis(e.attributes, shape);
  const bool exclusive = e.attributes.integer("exclusive") != 0;
  const bool reverse = e.attributes.integer("reverse") != 0;
  const std::int64_t count = shape[axis];
  for_each_line(shape, axis, [&](std::int64_t, std::int64_t begin, std::int64_t inner) {
    const std::int64_t first = reverse ? begin + (count - 1) * inner : begin;
    const std::int64_t stride = reverse ? -inner : inner;
    if (x.is_real()) {
      accumulate(x.reals, e.out().reals, first, stride, count, exclusive);
    } else {
      accumulate(x.integers, e.out().integers, first, stride, count, exclusive);
    }
  });
}

std::vector<Var> cumsum_gradient(const Backward& g) {
  return {cumsum(g.dy(), static_cast<int>(g.attributes.integer("axis")),
                 g.attributes.integer("exclusive") != 0, g.attributes.integer("reverse") == 0)};
}

Result<std::vector<TensorType>> infer_sum_squares(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(same_as_first_float(call));
  const bool wide = call.type(0).dtype == ir::DType::kF64;
  return std::vector{TensorType{wide ? ir::DType::kF64 : ir::DType::kF32, {}, {}}};
}

void evaluate_sum_squares(const Evaluation& e) {
  for (const double x : e.in(0).reals) e.out().reals[0] += x * x;
}

std::vector<Var> sum_squares_gradient(const Backward& g) {
  return {g.in(0) * cast(g.dy() * 2, g.in(0).dtype())};
}

}  // namespace

Var cumsum(Var x, int axis, bool exclusive, bool reverse) {
  return x.builder().call1("cumsum", {x},
                           {{"axis", std::int64_t{axis}},
                            {"exclusive", std::int64_t{exclusive}},
                            {"reverse", std::int64_t{reverse}}});
}

std::vector<OpDefinition> running_sum_definitions() {
  return {
      {.name = "cumsum",
       .inputs = exactly(1),
       .outputs = exactly(1),
       .attributes = {attribute::integer("axis", 0), attribute::integer("exclusive", 0),
                      attribute::integer("reverse", 0)},
       .infer = infer_cumsum,
       .gradient = Gradient(cumsum_gradient),
       .in_place = InPlace::over(0),
       .cost = elementwise_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kPlain,
       .evaluate = evaluate_cumsum},
      {.name = "sum_squares",
       .inputs = exactly(1),
       .outputs = exactly(1),
       .infer = infer_sum_squares,
       .gradient = Gradient(sum_squares_gradient),
       .in_place = InPlace::never(),
       .cost = cost_per_input<2>,
       .recompute = Recompute::kCheap,
       // A sum over all elements does not ask in which order they lie, but padding would count.
       .layout = LayoutRule::kPlain,
       .evaluate = evaluate_sum_squares},
  };
}

}  // namespace plimsoll::ops
