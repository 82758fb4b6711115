#include "plimsoll/ops/elementwise/dropout.h"

#include <algorithm>

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/dropout_mask.h"

namespace plimsoll::ops {
namespace {

// With the counter at this input.
Status check_dropout(const Call& call, int at) {
  PLIMSOLL_TRY(const double ratio, finite_attribute(call.attributes(), "ratio"));
  if (call.attributes().integer("first") < 0)
    return bad_input("first is {}, expects at least 0", call.attributes().integer("first"));
  if (ratio < 0 || ratio >= 1) return bad_input("ratio is {}, expects 0 <= ratio < 1", ratio);
  const TensorType& counter = call.type(at);
  if (counter.dtype != ir::DType::kU64 || counter.shape.rank() != 0) {
    return bad_input("the counter is {}, expects uint64[]", ir::to_string(counter));
  }
  return {};
}

Result<std::vector<TensorType>> infer_dropout(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_dropout(call, 1));
  return same_as_first_float(call);
}

// Of the data at one input, with the counter at the next.
void evaluate_dropout_at(const Evaluation& e, int data) {
  const double ratio = e.attributes.real("ratio");
  const DropoutKey key = dropout_key(static_cast<std::uint64_t>(e.attributes.integer("seed")),
                                     static_cast<std::uint64_t>(e.in(data + 1).integers[0]));
  const std::uint32_t threshold = dropout_threshold(ratio);
  const auto first = static_cast<std::uint64_t>(e.attributes.integer("first"));
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    e.out().reals[i] =
        dropout_hash(key, first + i) >= threshold ? e.in(data).reals[i] / (1 - ratio) : 0;
  }
}

void evaluate_dropout(const Evaluation& e) {
  evaluate_dropout_at(e, 0);
}

// add_dropout(x, h, counter) -> x + dropout(h, counter)

Result<std::vector<TensorType>> infer_add_dropout(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_dropout(call, 2));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 1, 0));
  return same_as_first_float(call);
}

void evaluate_add_dropout(const Evaluation& e) {
  evaluate_dropout_at(e, 1);
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) e.out().reals[i] += e.in(0).reals[i];
}

std::vector<Var> decompose_add_dropout(const Decomposition& d) {
  return {d.in(0) + d.builder.call1("dropout", {d.in(1), d.in(2)}, d.attributes.given())};
}

std::vector<Var> dropout_gradient(const Backward& g) {
  return {g.builder.call1("dropout", {g.dy(), g.in(1)}, g.attributes.given()), Var()};
}

// The counter, the last input, is every part's.
std::optional<Split> split_dropout(const Call& call, std::span<const TensorType>) {
  const ir::Shape& x = call.shape(0);
  if (x.rank() == 0 || call.attributes().integer("first") != 0) return std::nullopt;
  Split out{x.elements(0, std::max(1, x.rank() - 1)),
            1,
            std::vector(static_cast<std::size_t>(call.size()), Split::Input::kCut),
            {Split::Output::kCut}};
  out.inputs.back() = Split::Input::kWhole;
  out.first_element = "first";
  return out;
}

}  // namespace

Var dropout(Var x, Var counter, double ratio, std::int64_t seed) {
  return x.builder().call1("dropout", {x, counter}, {{"ratio", ratio}, {"seed", seed}});
}

std::vector<OpDefinition> dropout_definitions() {
  return {{.name = "add_dropout",
           .inputs = exactly(3),
           .outputs = exactly(1),
           .attributes = {attribute::real("ratio", 0.5), attribute::integer("seed", 0),
                          attribute::integer("first", 0)},
           .infer = infer_add_dropout,
           .gradient = Gradient::of_decomposition(),
           .in_place = InPlace::over_any_of({{0, 0}, {0, 1}}),
           .cost = cost_per_element<3>,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_add_dropout,
           .decompose = decompose_add_dropout,
           .split = split_dropout},
          {.name = "dropout",
           .inputs = exactly(2),
           .outputs = exactly(1),
           .attributes = {attribute::real("ratio", 0.5), attribute::integer("seed", 0),
                          attribute::integer("first", 0)},
           .infer = infer_dropout,
           .gradient = Gradient(dropout_gradient),
           .in_place = InPlace::over(0),
           .cost = elementwise_cost,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_dropout,
           .split = split_dropout}};
}

}  // namespace plimsoll::ops
