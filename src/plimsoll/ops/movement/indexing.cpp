#include "plimsoll/ops/movement/indexing.h"

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/movement/scatter_reduction.h"

namespace plimsoll::ops {
namespace {

// data[:axis] + indices + data[axis+1:]
Result<ir::Shape> gathered_shape(const ir::Shape& data, const ir::Shape& indices, int axis) {
  ir::Ints dims;
  for (int i = 0; i < axis; ++i) dims.push_back(data[i]);
  dims.insert(dims.end(), indices.begin(), indices.end());
  for (int i = axis + 1; i < data.rank(); ++i) dims.push_back(data[i]);
  return ir::Shape::make(dims);
}

Result<std::vector<TensorType>> infer_gather(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.type(1)));
  PLIMSOLL_TRY(const int axis,
               normal_axis(call.attributes().integer("axis"), call.shape(0).rank()));
  PLIMSOLL_TRY(const ir::Shape shape, gathered_shape(call.shape(0), call.shape(1), axis));
  return std::vector{TensorType{call.type(0).dtype, shape, {}}};
}

Status check_rows(const ir::Ints& rows, std::int64_t extent) {
  if (rows.empty()) return {};
  if (rows.size() != 2)
    return bad_input("rows: {} numbers, expects the first row and how many the table has",
                     rows.size());
  if (rows[0] < 0 || rows[0] > rows[1] || extent > rows[1] - rows[0])
    return bad_input("rows: {} from {} on, of a table of {}", extent, rows[0], rows[1]);
  return {};
}

Result<std::vector<TensorType>> infer_gather_grad(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.type(1)));
  PLIMSOLL_TRY(const ir::Shape data, shape_attribute(call.attributes(), "shape"));
  PLIMSOLL_TRY(const int axis, normal_axis(call.attributes().integer("axis"), data.rank()));
  PLIMSOLL_TRY(const ir::Shape expected, gathered_shape(data, call.shape(1), axis));
  if (expected != call.shape(0)) {
    return bad_input("the adjoint is {}, a gather from {} makes {}", ir::to_string(call.shape(0)),
                     ir::to_string(data), ir::to_string(expected));
  }
  PLIMSOLL_RETURN_IF_ERROR(check_rows(call.attributes().integers("rows", {}), data[axis]));
  const TensorType out{call.type(0).dtype, data, {}};
  if (call.has(2) && (call.type(2).dtype != out.dtype || call.shape(2) != data)) {
    return bad_input("the sum so far is {}, the gradient {}", ir::to_string(call.type(2)),
                     ir::to_string(out));
  }
  return std::vector{out};
}

// body(position in the gathered tensor, position in the data) for indices inside.
template <typename Body>
void for_each_gathered(const ir::Shape& data, const Array& indices, int axis, const TableRows& rows,
                       Body body) {
  const std::int64_t inner = data.elements(axis + 1, data.rank());
  const std::int64_t outer = data.elements(0, axis);
  const std::int64_t count = indices.elements();
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = rows.place(indices.integers[static_cast<std::size_t>(i)]);
      if (place < 0) continue;
      for (std::int64_t k = 0; k < inner; ++k) {
        body((o * count + i) * inner + k, (o * data[axis] + place) * inner + k);
      }
    }
  }
}

void evaluate_gather(const Evaluation& e) {
  const ir::Shape& data = e.in(0).type.shape;
  const int axis = verified_axis(e.attributes, data);
  for_each_gathered(data, e.in(1), axis, {0, data[axis], data[axis]},
                    [&](std::int64_t i, std::int64_t j) { e.out().copy_element(i, e.in(0), j); });
}

void evaluate_gather_grad(const Evaluation& e) {
  const ir::Shape& data = e.out().type.shape;
  if (e.has(2)) copy_all(e.out(), e.in(2));
  const int axis = verified_axis(e.attributes, data);
  for_each_gathered(
      data, e.in(1), axis, table_rows(e.attributes, data[axis]),
      [&](std::int64_t i, std::int64_t j) { combine(e.out(), j, e.in(0), i, Reduction::kAdd); });
}

std::vector<Var> gather_gradient(const Backward& g) {
  const int axis = verified_axis(g.attributes, g.in(0).shape());
  return {gather_grad(g.dy(), g.in(1), axis, g.in(0).shape()), Var()};
}

std::vector<Var> gather_grad_gradient(const Backward& g) {
  const int axis = verified_axis(g.attributes, g.out(0).shape());
  const std::int64_t extent = g.out(0).shape()[axis];
  const TableRows rows = table_rows(g.attributes, extent);
  Var table = g.dy();
  if (rows.table != extent) {  // zero where the other rows are
    ir::Ints pads(2 * static_cast<std::size_t>(table.rank()), 0);
    pads[static_cast<std::size_t>(axis)] = rows.first;
    pads[static_cast<std::size_t>(table.rank() + axis)] = rows.table - rows.first - extent;
    table = table.builder().call1("pad", {table}, {{"pads", pads}});
  }
  std::vector<Var> out{gather(table, g.in(1), axis), Var()};
  if (g.inputs.size() > 2) out.push_back(g.dy());
  return out;
}

// one_hot

Result<std::vector<TensorType>> infer_one_hot(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.type(0)));
  PLIMSOLL_TRY(const std::int64_t depth, required_integer(call.attributes(), "depth"));
  PLIMSOLL_TRY(const ir::DType dtype, dtype_attribute(call.attributes(), "dtype"));
  const ir::Shape& x = call.shape(0);
  PLIMSOLL_TRY(const int axis, normal_axis(call.attributes().integer("axis"), x.rank() + 1));
  ir::Ints dims(x.begin(), x.end());
  dims.insert(dims.begin() + axis, depth);
  PLIMSOLL_TRY(const ir::Shape shape, ir::Shape::make(dims));
  return std::vector{TensorType{dtype, shape, {}}};
}

void evaluate_one_hot(const Evaluation& e) {
  Array& y = e.out();
  const ir::Shape& shape = y.type.shape;
  const int axis = verified_axis(e.attributes, shape);
  const std::int64_t inner = shape.elements(axis + 1, shape.rank());
  const std::int64_t depth = shape[axis];
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t outer = i / (inner * depth);
    const auto from = static_cast<std::size_t>(outer * inner + i % inner);
    const bool hit = resolve(e.in(0).integers[from], depth) == i / inner % depth;
    y.set_number(i, hit ? e.attributes.real("on") : e.attributes.real("off"));
  }
}

// A lookup reads as much of the table as it writes, not all of it.
Cost gather_cost(const Call& call, std::span<const TensorType> outputs) {
  const double moved = static_cast<double>(ir::bytes_of(outputs[0]).value);
  return {.operations = 0,
          .bytes_read = moved + static_cast<double>(ir::bytes_of(call.type(1)).value),
          .bytes_written = moved};
}

}  // namespace

TableRows table_rows(const AttributeReader& attributes, std::int64_t extent) {
  const ir::Ints rows = attributes.integers("rows", {});
  if (rows.empty()) return {0, extent, extent};
  return {rows[0], extent, rows[1]};
}

Var gather(Var data, Var indices, int axis) {
  return data.builder().call1("gather", {data, indices}, {{"axis", std::int64_t{axis}}});
}

Var gather_grad(Var dy, Var indices, int axis, ir::Shape shape) {
  return dy.builder().call1(
      "gather_grad", {dy, indices},
      {{"axis", std::int64_t{axis}}, {"shape", ir::Ints(shape.begin(), shape.end())}});
}

Var one_hot(Var indices, const OneHot& options) {
  return indices.builder().call1("one_hot", {indices},
                                 {{"depth", options.depth},
                                  {"axis", std::int64_t{options.axis}},
                                  {"on", options.on},
                                  {"off", options.off},
                                  {"dtype", std::string(ir::name(options.dtype))}});
}

std::vector<OpDefinition> indexing_definitions() {
  OpDefinition gather_definition =
      moving_definition("gather", 2, infer_gather, Gradient(gather_gradient), evaluate_gather)
          .having({attribute::integer("axis", 0)});
  gather_definition.cost = gather_cost;
  OpDefinition grad_definition =
      moving_definition("gather_grad", 2, infer_gather_grad, Gradient(gather_grad_gradient),
                        evaluate_gather_grad)
          .having({attribute::integer("axis", 0), attribute::integers("shape"),
                   attribute::integers("rows")});
  grad_definition.inputs = between(2, 3);
  grad_definition.in_place = InPlace::over(2);
  return {
      gather_definition,
      grad_definition,
      moving_definition("one_hot", 1, infer_one_hot, Gradient::none(), evaluate_one_hot)
          .having({attribute::integer("depth"), attribute::integer("axis", -1),
                   attribute::real("on", 1), attribute::real("off", 0), attribute::text("dtype")}),
  };
}

}  // namespace plimsoll::ops
