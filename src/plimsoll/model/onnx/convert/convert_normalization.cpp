// Normalisations.
#include <cmath>
#include <numeric>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// Statistics of this batch, and the running ones blended with them.
Status train_batch_norm(OperatorCall& call, Var x, Var gamma, Var beta, double epsilon,
                        double momentum) {
  Builder& builder = call.builder();
  const auto made = builder.call("batch_norm", {x, gamma, beta}, {{"epsilon", epsilon}});
  call.out(0, cast_to(made[0], call.dtype(0)));
  if (made.size() < 3) return {};
  const auto blended = [&](Var running, Var fresh) {
    return running * momentum + fresh * (1 - momentum);
  };
  if (call.importer().training() && call.importer().as_state(call.input(3)) &&
      call.importer().as_state(call.input(4))) {
    const Var mean = call.importer().as_state(call.input(3));
    const Var variance = call.importer().as_state(call.input(4));
    const std::int64_t count = x.shape().elements() / std::max<std::int64_t>(x.dim(1), 1);
    call.importer().at_end_of_step({"batch_norm_update",
                                    {mean, variance, made[1], made[2]},
                                    {{"momentum", 1 - momentum}, {"count", count}},
                                    2});
    call.out_alias(1, call.input(3));
    call.out_alias(2, call.input(4));
  } else {
    if (call.wants(1)) call.out(1, blended(call.in(3), made[1]));
    if (call.wants(2)) call.out(2, blended(call.in(4), made[2]));
  }
  call.out(3, made[1]);
  call.out(4, made[2]);
  return {};
}

Status batch_normalization(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2, 3, 4}));
  if (call.version() < 9 && call.integer("spatial", 1) == 0)
    return bad_input("spatial = 0 is not supported");
  const double epsilon = call.real("epsilon", 1e-5F);
  const double momentum = call.real("momentum", 0.9F);
  const bool training =
      call.version() >= 14
          ? call.integer("training_mode", 0) != 0
          : call.outputs() > 1 || (call.version() < 7 && call.integer("is_test", 0) == 0 &&
                                   call.importer().training());
  // Statistics may be of a wider type than x: everything is computed in theirs.
  const DType working = call.dtype(3);
  const Var x = cast_to(call.in(0), working);
  const Var gamma = cast_to(call.in(1), working);
  const Var beta = cast_to(call.in(2), working);
  if (x.rank() < 2) return bad_input("its input has rank {}, expects at least 2", x.rank());
  if (training) return train_batch_norm(call, x, gamma, beta, epsilon, momentum);
  const auto statistic = [&](int i) {
    const Var state = call.importer().as_state(call.input(i));
    return state && &call.builder() == &call.importer().builder() ? state : call.in(i);
  };
  const Var y = call.builder().call1(
      "batch_norm_inference", {x, gamma, beta, statistic(3), statistic(4)}, {{"epsilon", epsilon}});
  return call.done(cast_to(y, call.dtype(0)));
}

Status instance_normalization(OperatorCall& call) {
  if (!call.has(0) || call.rank(0) < 2) return bad_input("its input has no channels");
  return call.done(call.builder().call1(
      "group_norm", {call.in(0), call.in(1), call.in(2)},
      {{"groups", call.shape(0)[1]}, {"epsilon", call.real("epsilon", 1e-5F)}}));
}

Status group_normalization(OperatorCall& call) {
  if (!call.has(0) || call.rank(0) < 2) return bad_input("its input has no channels");
  const std::int64_t groups = call.integer("num_groups", 0);
  const std::int64_t channels = call.shape(0)[1];
  if (groups < 1 || channels % groups != 0)
    return bad_input("{} channels in {} groups", channels, groups);
  // In operator set 18 scale and bias were given per group.
  const auto per_channel = [&](Var v) {
    if (!v || v.rank() != 1 || v.dim(0) == channels || v.dim(0) != groups) return v;
    return reshape_to(expand_to(reshape_to(v, {groups, 1}), {groups, channels / groups}),
                      {channels});
  };
  return call.done(call.builder().call1(
      "group_norm", {call.in(0), per_channel(call.in(1)), per_channel(call.in(2))},
      {{"groups", groups}, {"epsilon", call.real("epsilon", 1e-5F)}}));
}

// Scale and bias may be smaller than the normalised axes and broadcast.
Var fitted(Var v, const ir::Shape& x, int axis) {
  if (!v) return v;
  ir::Ints tail(x.begin() + axis, x.end());
  if (v.rank() > static_cast<int>(tail.size())) return reshape_to(v, tail);
  return expand_to(v, tail);
}

Status layer_normalization(OperatorCall& call) {
  if (!call.has(0) || !call.has(1)) return bad_input("its input or scale is missing");
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", -1), call.rank(0)));
  const ir::Shape& shape = call.shape(0);
  std::vector<Var> inputs{call.in(0), fitted(call.in(1), shape, axis)};
  if (call.has(2)) inputs.push_back(fitted(call.in(2), shape, axis));
  const auto made =
      call.builder().call("layer_norm", inputs,
                          {{"axis", std::int64_t{axis}}, {"epsilon", call.real("epsilon", 1e-5F)}});
  call.out(0, made[0]);
  ir::Ints kept = dims_of(shape);
  std::fill(kept.begin() + axis, kept.end(), 1);
  for (int i = 1; i < 3; ++i) {
    if (call.wants(i) && made.size() > 2)
      call.out(i, reshape_to(made[static_cast<std::size_t>(i)], kept));
  }
  return {};
}

Status rms_normalization(OperatorCall& call) {
  if (!call.has(0) || !call.has(1)) return bad_input("its input or scale is missing");
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", -1), call.rank(0)));
  const auto made =
      call.builder().call("rms_norm", {call.in(0), fitted(call.in(1), call.shape(0), axis)},
                          {{"axis", std::int64_t{axis}}, {"epsilon", call.real("epsilon", 1e-5F)}});
  return call.done(made[0]);
}

Status lp_normalization(OperatorCall& call) {
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", -1), call.rank(0)));
  const std::int64_t p = call.integer("p", 2);
  if (p != 1 && p != 2) return bad_input("p is {}, expects 1 or 2", p);
  const Var x = call.in(0);
  const Var powers = p == 1 ? unary_call("abs", x) : x * x;
  Var norm = reduce("reduce_sum", powers, {axis}, true);
  if (p == 2) norm = unary_call("sqrt", norm);
  // Zeros stay zeros.
  Builder& builder = call.builder();
  const Var zero = ops::number(norm, 0);
  norm = builder.call1("where", {builder.call1("equal", {norm, zero}), ops::number(norm, 1), norm});
  return call.done(x / norm);
}

Status mean_variance_normalization(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints axes, normal_axes(call.integers("axes", {0, 2, 3}), call.rank(0)));
  const Var x = call.in(0);
  const Var centred = x - reduce("reduce_mean", x, axes, true);
  const Var deviation = unary_call("sqrt", reduce("reduce_mean", centred * centred, axes, true));
  return call.done(centred / (deviation + 1e-9));
}

Status lrn(OperatorCall& call) {
  return call.done(call.builder().call1("lrn", {call.in(0)},
                                        {{"size", call.integer("size", 1)},
                                         {"alpha", call.real("alpha", 1e-4F)},
                                         {"beta", call.real("beta", 0.75)},
                                         {"k", call.real("bias", 1)}}));
}

}  // namespace

std::vector<Operator> normalization_operators() {
  return {
      {"BatchNormalization", batch_normalization, "epsilon is_test momentum spatial training_mode"},
      {"InstanceNormalization", instance_normalization, "epsilon"},
      {"GroupNormalization", group_normalization, "epsilon num_groups stash_type"},
      {"LayerNormalization", layer_normalization, "axis epsilon stash_type"},
      {"RMSNormalization", rms_normalization, "axis epsilon stash_type"},
      {"LpNormalization", lp_normalization, "axis p"},
      {"MeanVarianceNormalization", mean_variance_normalization, "axes"},
      {"LRN", lrn, "alpha beta bias size"},
  };
}

}  // namespace plimsoll::model::onnx
