#include "plimsoll/ops/elementwise/random_uniform.h"

#include <cmath>

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/dropout_mask.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_random_uniform(const Call& call) {
  PLIMSOLL_TRY(const ir::Shape shape, shape_attribute(call.attributes(), "shape"));
  PLIMSOLL_TRY(const ir::DType dtype, dtype_attribute(call.attributes(), "dtype"));
  PLIMSOLL_TRY(const double low, finite_attribute(call.attributes(), "low"));
  PLIMSOLL_TRY(const double high, finite_attribute(call.attributes(), "high"));
  if (!ir::is_float(dtype)) return bad_input("dtype is {}, expects floats", ir::name(dtype));
  if (low > high) return bad_input("low is {}, above high, {}", low, high);
  if (!std::isfinite(high - low)) return bad_input("from {} to {} is too far", low, high);
  const TensorType& counter = call.type(0);
  if (counter.dtype != ir::DType::kU64 || counter.shape.rank() != 0)
    return bad_input("the counter is {}, expects uint64[]", ir::to_string(counter));
  return std::vector{TensorType{dtype, shape, {}}};
}

void evaluate_random_uniform(const Evaluation& e) {
  const double low = e.attributes.real("low");
  const double range = e.attributes.real("high") - low;
  const DropoutKey key = dropout_key(static_cast<std::uint64_t>(e.attributes.integer("seed")),
                                     static_cast<std::uint64_t>(e.in(0).integers[0]));
  for (std::size_t i = 0; i < e.out().reals.size(); ++i)
    e.out().reals[i] = low + range * uniform_of(dropout_hash(key, i));
}

}  // namespace

Var random_uniform(Var counter, const ir::TensorType& type, double low, double high,
                   std::int64_t seed) {
  return counter.builder().call1("random_uniform", {counter},
                                 {{"shape", ir::Ints(type.shape.begin(), type.shape.end())},
                                  {"dtype", std::string(ir::name(type.dtype))},
                                  {"low", low},
                                  {"high", high},
                                  {"seed", seed}});
}

std::vector<OpDefinition> random_uniform_definitions() {
  OpDefinition out = moving_definition("random_uniform", 1, infer_random_uniform, Gradient::none(),
                                       evaluate_random_uniform, elementwise_cost);
  // No gradient reads the counter, so it may have been counted up when they are needed again.
  out.recompute = Recompute::kNever;
  return {std::move(out).having({attribute::integers("shape"), attribute::text("dtype"),
                                 attribute::real("low", 0), attribute::real("high", 1),
                                 attribute::integer("seed", 0)})};
}

}  // namespace plimsoll::ops
