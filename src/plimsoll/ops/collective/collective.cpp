#include "plimsoll/ops/collective/collective.h"

#include <algorithm>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"

namespace plimsoll::ops {
namespace {

std::int64_t ranks_of(const AttributeReader& attributes) {
  return attributes.integer("ranks");
}

Status check_ranks(const Call& call) {
  const std::int64_t ranks = ranks_of(call.attributes());
  if (ranks < 1 || ranks > 1 << 20) return bad_input("ranks {}: expects 1 to {}", ranks, 1 << 20);
  return {};
}

// One dtype, because one message carries them all.
Result<std::vector<TensorType>> infer_all_reduce(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_ranks(call));
  std::vector<TensorType> out;
  for (int i = 0; i < call.size(); ++i) {
    if (!call.has(i)) return bad_input("input {} is missing", i);
    PLIMSOLL_RETURN_IF_ERROR(expect_float(call, i));
    PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, i, call.type(0).dtype));
    out.push_back(call.type(i));
  }
  return out;
}

Result<std::vector<TensorType>> infer_reduce_scatter(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_ranks(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 1, ir::kMaxRank));
  const std::int64_t ranks = ranks_of(call.attributes());
  TensorType out = call.type(0);
  if (out.shape[0] % ranks != 0)
    return bad_input("the first axis is {}, which {} ranks cannot share", out.shape[0], ranks);
  out.shape[0] /= ranks;
  return std::vector{out};
}

// Of any type: nothing is added.
Result<std::vector<TensorType>> infer_all_gather(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_ranks(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 1, ir::kMaxRank));
  TensorType out = call.type(0);
  const std::int64_t ranks = ranks_of(call.attributes());
  const auto all = checked_multiply(out.shape[0], ranks);
  if (!all) return bad_input("{} ranks of {} rows are too many", ranks, out.shape[0]);
  out.shape[0] = *all;
  return std::vector{out};
}

Result<std::vector<TensorType>> infer_broadcast(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_ranks(call));
  return same_as_first_float(call);
}

std::vector<Var> all_reduce_gradient(const Backward& g) {
  std::vector<Var> out(g.inputs.size());
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    if (g.adjoints[i] && g.wants(static_cast<int>(i)))
      out[i] = g.builder.call1("all_reduce", {g.adjoints[i]}, g.attributes.given());
  }
  return out;
}

std::vector<Var> reduce_scatter_gradient(const Backward& g) {
  return {g.builder.call1("all_gather", {g.dy()}, {{"ranks", ranks_of(g.attributes)}})};
}

std::vector<Var> all_gather_gradient(const Backward& g) {
  return {g.builder.call1("reduce_scatter", {g.dy()}, {{"ranks", ranks_of(g.attributes)}})};
}

void evaluate_all_reduce(const Evaluation& e) {
  const auto ranks = static_cast<double>(ranks_of(e.attributes));
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    const std::vector<double>& from = e.inputs[i]->reals;
    std::transform(from.begin(), from.end(), e.outputs[i].reals.begin(),
                   [ranks](double x) { return ranks * x; });
  }
}

void evaluate_reduce_scatter(const Evaluation& e) {
  const auto ranks = static_cast<double>(ranks_of(e.attributes));
  for (std::size_t i = 0; i < e.out().reals.size(); ++i)
    e.out().reals[i] = ranks * e.in(0).reals[i];
}

void evaluate_all_gather(const Evaluation& e) {
  const std::int64_t part = e.in(0).elements();
  for (std::int64_t i = 0; i < e.out().elements(); ++i) e.out().copy_element(i, e.in(0), i % part);
}

void evaluate_same(const Evaluation& e) {
  e.out().reals = e.in(0).reals;
}

// In the memory of what it reads, tensor by tensor.
InPlace each_over_itself() {
  std::vector<InPlace::Pair> pairs;
  for (int i = 0; i < kMostReduced; ++i) pairs.push_back({i, i});
  return InPlace::over_any_of(std::move(pairs));
}

OpDefinition collective(std::string_view name, Arity arity, InferRule infer, Gradient gradient,
                        InPlace in_place, EvaluateRule evaluate) {
  return {.name = name,
          .inputs = arity,
          .outputs = arity,
          .attributes = {attribute::integer("ranks", 1), attribute::integer("fuse", 0),
                         attribute::choice("order", {"any", "fixed"})},
          .infer = infer,
          .gradient = gradient,
          .in_place = std::move(in_place),
          .cost = elementwise_cost,
          .recompute = Recompute::kNever,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate};
}

Var call_collective(const char* op, Var x, const CollectiveOptions& options) {
  ir::Attributes attributes{{"ranks", options.ranks}};
  if (options.fuse) attributes.set("fuse", std::int64_t{1});
  if (options.fixed_order) attributes.set("order", std::string("fixed"));
  return x.builder().call1(op, {x}, std::move(attributes));
}

}  // namespace

Var all_reduce(Var x, const CollectiveOptions& options) {
  return call_collective("all_reduce", x, options);
}
Var reduce_scatter(Var x, const CollectiveOptions& options) {
  return call_collective("reduce_scatter", x, options);
}
Var all_gather(Var x, const CollectiveOptions& options) {
  return call_collective("all_gather", x, options);
}
Var broadcast_ranks(Var x, const CollectiveOptions& options) {
  return call_collective("broadcast", x, options);
}

bool is_collective(std::string_view op) {
  return op == "all_reduce" || op == "reduce_scatter" || op == "all_gather" || op == "broadcast" ||
         is_shard_operator(op);
}

std::vector<OpDefinition> collective_definitions() {
  return {
      collective("all_reduce", between(1, kMostReduced), infer_all_reduce,
                 Gradient(all_reduce_gradient), each_over_itself(), evaluate_all_reduce),
      collective("reduce_scatter", exactly(1), infer_reduce_scatter,
                 Gradient(reduce_scatter_gradient), InPlace::never(), evaluate_reduce_scatter),
      collective("all_gather", exactly(1), infer_all_gather, Gradient(all_gather_gradient),
                 InPlace::never(), evaluate_all_gather),
      // Its gradient is a sum that only rank 0 has a use for: nobody differentiates it.
      collective("broadcast", exactly(1), infer_broadcast, Gradient::none(), InPlace::over(0),
                 evaluate_same),
  };
}

}  // namespace plimsoll::ops
