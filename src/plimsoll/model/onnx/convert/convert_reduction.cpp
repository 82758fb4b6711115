// Reductions and what is made of them.
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

struct Reduction {
  ir::Ints axes;
  bool keepdims;
};

Result<Reduction> reduction_of(OperatorCall& call) {
  const std::int64_t axes_are_input_since = call.node().op == "ReduceSum" ? 13 : 18;
  ir::Ints axes = call.integers("axes");
  if (call.version() >= axes_are_input_since) {
    axes.clear();
    if (call.has(1)) {
      PLIMSOLL_TRY(axes, call.known_integers(1, "axes"));
    }
  }
  const int rank = call.rank(0);
  const bool noop = call.integer("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && !noop) axes = range(0, rank);
  PLIMSOLL_TRY(axes, normal_axes(axes, rank));
  return Reduction{axes, call.integer("keepdims", 1) != 0};
}

Var reduced(std::string_view op, Var x, const Reduction& reduction) {
  return reduction.axes.empty() ? x : reduce(op, x, reduction.axes, reduction.keepdims);
}

Status plain(OperatorCall& call) {
  PLIMSOLL_TRY(const Reduction reduction, reduction_of(call));
  Var x = call.in(0);
  const DType dtype = x.dtype();
  // Booleans and small integers are compared in a type every reduction takes.
  const bool narrow = !ir::is_float(dtype) && dtype != DType::kI64 && dtype != DType::kI32;
  if (narrow) x = cast_to(x, DType::kI64);
  if (reduction.axes.empty()) return call.done(call.input(0));
  return call.done(cast_to(reduced(call.target(), x, reduction), dtype));
}

Status reduce_mean(OperatorCall& call) {
  if (ir::is_float(call.dtype(0))) return plain(call);
  PLIMSOLL_TRY(const Reduction reduction, reduction_of(call));
  const Var real = cast_to(call.in(0), DType::kF64);
  return call.done(cast_to(reduced("reduce_mean", real, reduction), call.dtype(0)));
}

Status reduce_l1(OperatorCall& call) {
  PLIMSOLL_TRY(const Reduction reduction, reduction_of(call));
  return call.done(reduced("reduce_sum", unary_call("abs", call.in(0)), reduction));
}

Status reduce_l2(OperatorCall& call) {
  PLIMSOLL_TRY(const Reduction reduction, reduction_of(call));
  const Var x = call.in(0);
  const Var sum = reduced("reduce_sum", x * x, reduction);
  const DType working = ir::is_float(x.dtype()) ? x.dtype() : DType::kF64;
  return call.done(cast_to(unary_call("sqrt", cast_to(sum, working)), x.dtype()));
}

Status reduce_sum_square(OperatorCall& call) {
  PLIMSOLL_TRY(const Reduction reduction, reduction_of(call));
  const Var x = call.in(0);
  return call.done(reduced("reduce_sum", x * x, reduction));
}

Status reduce_log_sum(OperatorCall& call) {
  PLIMSOLL_TRY(const Reduction reduction, reduction_of(call));
  return call.done(unary_call("log", reduced("reduce_sum", call.in(0), reduction)));
}

// The largest element is taken out first, so that exp cannot overflow. Of an empty range nothing is
// the largest, and the sum alone says it.
Status reduce_log_sum_exp(OperatorCall& call) {
  PLIMSOLL_TRY(Reduction reduction, reduction_of(call));
  const Var x = call.in(0);
  if (reduction.axes.empty()) return call.done(call.input(0));
  bool empty = false;
  ir::Ints shape;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool gone =
        std::find(reduction.axes.begin(), reduction.axes.end(), axis) != reduction.axes.end();
    empty = empty || (gone && x.dim(axis) == 0);
    if (!gone) shape.push_back(x.dim(axis));
  }
  if (empty)
    return call.done(unary_call("log", reduced("reduce_sum", unary_call("exp", x), reduction)));
  const Var largest = reduce("reduce_max", x, reduction.axes, true);
  const Var sum = reduce("reduce_sum", unary_call("exp", x - largest), reduction.axes, true);
  const Var y = unary_call("log", sum) + largest;
  return call.done(reduction.keepdims ? y : reshape_to(y, shape));
}

Status arg_extreme(OperatorCall& call) {
  return call.done(call.builder().call1(call.target(), {call.in(0)},
                                        {{"axis", call.integer("axis", 0)},
                                         {"keepdims", call.integer("keepdims", 1)},
                                         {"last", call.integer("select_last_index", 0)}}));
}

struct Flat {
  Var x;
  std::int64_t axis;
};

// Before operator set 13 softmax and its kin flattened everything behind the axis.
Result<Flat> flattened(OperatorCall& call) {
  const std::int64_t otherwise = call.version() < 13 ? 1 : -1;
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", otherwise), call.rank(0)));
  const Var x = call.in(0);
  if (call.version() >= 13) return Flat{x, axis};
  if (axis == x.rank() - 1) return Flat{x, axis};
  return Flat{reshape_to(x, {x.shape().elements(0, axis), x.shape().elements(axis, x.rank())}), 1};
}

Status softmax(OperatorCall& call) {
  PLIMSOLL_TRY(const Flat flat, flattened(call));
  const Var y = call.builder().call1(call.target(), {flat.x}, {{"axis", flat.axis}});
  return call.done(reshape_to(y, dims_of(call.shape(0))));
}

Status hardmax(OperatorCall& call) {
  PLIMSOLL_TRY(const Flat flat, flattened(call));
  Builder& builder = call.builder();
  const Var index =
      builder.call1("argmax", {flat.x}, {{"axis", flat.axis}, {"keepdims", std::int64_t{0}}});
  const Var y = builder.call1("one_hot", {index},
                              {{"depth", flat.x.dim(static_cast<int>(flat.axis))},
                               {"axis", flat.axis},
                               {"dtype", std::string(ir::name(flat.x.dtype()))}});
  return call.done(reshape_to(y, dims_of(call.shape(0))));
}

}  // namespace

std::vector<Operator> reduction_operators() {
  return {
      {"ReduceSum", plain, "axes keepdims noop_with_empty_axes", "reduce_sum"},
      {"ReduceMean", reduce_mean, "axes keepdims noop_with_empty_axes", "reduce_mean"},
      {"ReduceMax", plain, "axes keepdims noop_with_empty_axes", "reduce_max"},
      {"ReduceMin", plain, "axes keepdims noop_with_empty_axes", "reduce_min"},
      {"ReduceProd", plain, "axes keepdims noop_with_empty_axes", "reduce_prod"},
      {"ReduceL1", reduce_l1, "axes keepdims noop_with_empty_axes"},
      {"ReduceL2", reduce_l2, "axes keepdims noop_with_empty_axes"},
      {"ReduceSumSquare", reduce_sum_square, "axes keepdims noop_with_empty_axes"},
      {"ReduceLogSum", reduce_log_sum, "axes keepdims noop_with_empty_axes"},
      {"ReduceLogSumExp", reduce_log_sum_exp, "axes keepdims noop_with_empty_axes"},
      {"ArgMax", arg_extreme, "axis keepdims select_last_index", "argmax"},
      {"ArgMin", arg_extreme, "axis keepdims select_last_index", "argmin"},
      {"Softmax", softmax, "axis", "softmax"},
      {"LogSoftmax", softmax, "axis", "log_softmax"},
      {"Hardmax", hardmax, "axis"},
  };
}

}  // namespace plimsoll::model::onnx
