// Determinants and inverses, by Gaussian elimination unrolled into ordinary operators.
//
// One step takes a pivot row out of the remaining rows (the largest first element, so that division
// stays tame), clears the first column with it and leaves a matrix that is one smaller both ways.
// Which row it is only a run can tell: a one-hot vector picks it by a product, and puts the first
// row in its place.
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

// Beyond this a graph of unrolled steps is no longer sensible.
constexpr std::int64_t kLargestMatrix = 64;

struct Step {
  Var pivot;    // [B, 1, w]: the row taken out
  Var sign;     // [B]: -1 where it was not the first one
  Var remains;  // [B, rows-1, w]: the others, not yet cleared
};

Step take_pivot(Var rows) {
  Builder& builder = rows.builder();
  const Var first_column = unary_call("abs", select(rows, 2, 0));
  const Var place = builder.call1("argmax", {first_column}, {{"axis", std::int64_t{1}}});
  const Var picked = builder.call1(
      "one_hot", {place}, {{"depth", rows.dim(1)}, {"dtype", std::string(ir::name(rows.dtype()))}});
  const std::int64_t batch = rows.dim(0);
  const std::int64_t count = rows.dim(1);
  const Var pivot = builder.call1("matmul", {reshape_to(picked, {batch, 1, count}), rows});
  const Var first = slice_axis(rows, 1, 0, 1);
  const Var here = reshape_to(slice_axis(picked, 1, 1, count), {batch, count - 1, 1});
  return {pivot, select(picked, 1, 0) * 2.0 - 1.0,
          slice_axis(rows, 1, 1, count) + here * (first - pivot)};
}

// rows − rows[:, 0]·pivot, without the column that is now zero. `pivot` begins with 1.
Var cleared(Var rows, Var pivot) {
  const std::int64_t width = rows.dim(2);
  return slice_axis(rows, 2, 1, width) - slice_axis(rows, 2, 0, 1) * slice_axis(pivot, 2, 1, width);
}

// Divided by its first element; a row that begins with 0 becomes 0, as the matrix is singular
// anyway.
Var scaled(Var pivot) {
  Builder& builder = pivot.builder();
  const Var first = slice_axis(pivot, 2, 0, 1);
  const Var zero = ops::number(pivot, 0);
  const Var safe =
      builder.call1("where", {builder.call1("equal", {first, zero}), ops::number(pivot, 1), first});
  return pivot / safe;
}

Result<Var> square(OperatorCall& call) {
  const int rank = call.rank(0);
  if (rank < 2 || call.shape(0)[rank - 1] != call.shape(0)[rank - 2] ||
      call.shape(0)[rank - 1] < 1) {
    return bad_input("{} holds no square matrices", ir::to_string(call.shape(0)));
  }
  const std::int64_t n = call.shape(0)[rank - 1];
  if (n > kLargestMatrix)
    return bad_input("matrices of {} rows are too large, at most {} are supported", n,
                     kLargestMatrix);
  return reshape_to(call.in(0), {call.shape(0).elements(0, rank - 2), n, n});
}

Status det(OperatorCall& call) {
  PLIMSOLL_TRY(Var rows, square(call));
  Var product;
  for (std::int64_t left = rows.dim(1); left > 0 && !call.builder().error(); --left) {
    Var factor;
    if (left == 1) {
      factor = reshape_to(rows, {rows.dim(0)});
    } else {
      const Step step = take_pivot(rows);
      factor = step.sign * reshape_to(slice_axis(step.pivot, 2, 0, 1), {rows.dim(0)});
      rows = cleared(step.remains, scaled(step.pivot));
    }
    product = product ? product * factor : factor;
  }
  return call.done(reshape_to(product, ir::Ints(call.shape(0).begin(), call.shape(0).end() - 2)));
}

// [A | 1] is turned into [1 | A⁻¹], the rows of the result growing as those of A go.
Status inverse(OperatorCall& call) {
  PLIMSOLL_TRY(const Var a, square(call));
  const std::int64_t n = a.dim(1);
  std::vector<double> ones(static_cast<std::size_t>(n * n), 0);
  for (std::int64_t i = 0; i < n; ++i) ones[static_cast<std::size_t>(i * n + i)] = 1;
  const Var unit = call.constant(Array::of_reals({1, n, n}, std::move(ones), a.dtype()));
  Var rows = concat_all({a, expand_to(unit, {a.dim(0), n, n})}, 2);
  Var done;
  for (std::int64_t left = n; left > 0 && !call.builder().error(); --left) {
    Var pivot = rows;
    Var others;
    if (left > 1) {
      const Step step = take_pivot(rows);
      pivot = step.pivot;
      others = step.remains;
    }
    pivot = scaled(pivot);
    if (others) rows = cleared(others, pivot);
    const Var row = slice_axis(pivot, 2, 1, pivot.dim(2));
    done = done ? concat_all({cleared(done, pivot), row}, 1) : row;
  }
  return call.done(reshape_to(done, dims_of(call.shape(0))));
}

}  // namespace

std::vector<Operator> elimination_operators() {
  return {{"Det", det}, {"Inverse", inverse, {}, {}, true, "com.microsoft"}};
}

}  // namespace plimsoll::model::onnx
