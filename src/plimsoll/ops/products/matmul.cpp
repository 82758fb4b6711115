#include "plimsoll/ops/products/matmul.h"

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/products/dense.h"
#include "plimsoll/ops/reduction/reduction.h"

namespace plimsoll::ops {
namespace {

MatmulOptions options_of(const AttributeReader& attributes) {
  return {attributes.integer("trans_a") != 0, attributes.integer("trans_b") != 0};
}

// Rows and columns of the last two axes, as the product sees them.
struct Matrix {
  std::int64_t rows;
  std::int64_t columns;
};

Matrix matrix_of(const ir::Shape& shape, bool turned) {
  const Matrix plain{shape[shape.rank() - 2], shape[shape.rank() - 1]};
  return turned ? Matrix{plain.columns, plain.rows} : plain;
}

ir::Shape batch_of(const ir::Shape& shape) {
  return ir::Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 2)));
}

Result<std::vector<TensorType>> infer_matmul(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 0, 2, ir::kMaxRank));
  PLIMSOLL_RETURN_IF_ERROR(expect_rank(call, 1, 2, ir::kMaxRank));
  const MatmulOptions options = options_of(call.attributes());
  const Matrix a = matrix_of(call.shape(0), options.trans_a);
  const Matrix b = matrix_of(call.shape(1), options.trans_b);
  if (a.columns != b.rows) {
    return bad_input("shapes {} and {} do not multiply: {} columns meet {} rows",
                     ir::to_string(call.shape(0)), ir::to_string(call.shape(1)), a.columns, b.rows);
  }
  auto shape = ir::broadcast(batch_of(call.shape(0)), batch_of(call.shape(1)));
  if (!shape) {
    return bad_input("batches of {} and {} do not broadcast", ir::to_string(call.shape(0)),
                     ir::to_string(call.shape(1)));
  }
  shape->push_back(a.rows);
  shape->push_back(b.columns);
  return std::vector<TensorType>{{call.type(0).dtype, *shape, {}}};
}

std::vector<Var> matmul_gradient(const Backward& g) {
  const auto [ta, tb] = options_of(g.attributes);
  const Var a = g.in(0);
  const Var b = g.in(1);
  const Var dy = g.dy();
  std::vector<Var> out(2);
  if (g.wants(0)) {
    const Var da = ta ? matmul(b, dy, {tb, true}) : matmul(dy, b, {false, !tb});
    out[0] = sum_to(da, a.shape());
  }
  if (g.wants(1)) {
    const Var db = tb ? matmul(dy, a, {true, ta}) : matmul(a, dy, {!ta, false});
    out[1] = sum_to(db, b.shape());
  }
  return out;
}

Cost matmul_cost(const Call& call, std::span<const TensorType> outputs) {
  const Matrix a = matrix_of(call.shape(0), options_of(call.attributes()).trans_a);
  return cost_with(2.0 * element_count(outputs[0].shape) * static_cast<double>(a.columns), call,
                   outputs);
}

void evaluate_matmul(const Evaluation& e) {
  const auto [ta, tb] = options_of(e.attributes);
  const ir::Shape& shape_a = e.in(0).type.shape;
  const ir::Shape& shape_b = e.in(1).type.shape;
  const ir::Shape& shape_y = e.out().type.shape;
  if (e.out().elements() == 0) return;
  const Matrix a = matrix_of(shape_a, ta);
  const Matrix b = matrix_of(shape_b, tb);
  for_each_broadcast(batch_of(shape_y), batch_of(shape_a), batch_of(shape_b),
                     [&](std::int64_t i, std::int64_t j, std::int64_t k) {
                       const double* left = e.in(0).reals.data() + j * a.rows * a.columns;
                       const double* right = e.in(1).reals.data() + k * b.rows * b.columns;
                       std::vector<double> turned_left;
                       std::vector<double> turned_right;
                       if (ta) left = (turned_left = turned(a.columns, a.rows, left)).data();
                       if (tb) right = (turned_right = turned(b.columns, b.rows, right)).data();
                       multiply_add(a.rows, a.columns, b.columns, left, right,
                                    e.out().reals.data() + i * a.rows * b.columns);
                     });
}

}  // namespace

Var matmul(Var a, Var b, const MatmulOptions& options) {
  ir::Attributes attributes;
  if (options.trans_a) attributes.set("trans_a", std::int64_t{1});
  if (options.trans_b) attributes.set("trans_b", std::int64_t{1});
  return a.builder().call1("matmul", {a, b}, std::move(attributes));
}

std::vector<OpDefinition> matmul_definitions() {
  return {{.name = "matmul",
           .inputs = exactly(2),
           .outputs = exactly(1),
           .attributes = {attribute::integer("trans_a", 0), attribute::integer("trans_b", 0)},
           .infer = infer_matmul,
           .gradient = Gradient(matmul_gradient),
           .in_place = InPlace::never(),
           .cost = matmul_cost,
           .recompute = Recompute::kExpensive,
           .layout = LayoutRule::kPlain,
           .evaluate = evaluate_matmul}};
}

}  // namespace plimsoll::ops
