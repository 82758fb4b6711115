#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/movement/indexing.h"
#include "plimsoll/ops/movement/scatter_reduction.h"

namespace plimsoll::ops {
namespace {

// data[batch.., named.., whole..], indices[batch.., rows.., depth]: each row of indices names one
// block of the whole axes.
struct NdPlan {
  int batch_dims = 0;
  int depth = 0;
  ir::Shape blocks;  // the shape of what is read or written: batch, rows, whole
};

Result<NdPlan> plan_nd(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.type(1)));
  const ir::Shape& data = call.shape(0);
  const ir::Shape& indices = call.shape(1);
  const std::int64_t batch = call.attributes().integer("batch_dims");
  if (batch < 0 || batch >= indices.rank() || batch > data.rank()) {
    return bad_input("batch_dims {} does not fit data {} and indices {}", batch,
                     ir::to_string(data), ir::to_string(indices));
  }
  const std::int64_t depth = indices[indices.rank() - 1];
  if (depth > data.rank() - batch) {
    return bad_input("the last axis of indices has {} entries, data {} has {} axes to name", depth,
                     ir::to_string(data), data.rank() - batch);
  }
  ir::Ints dims;
  for (int i = 0; i < indices.rank() - 1; ++i) {
    if (i < batch && indices[i] != data[i]) {
      return bad_input("batch axis {}: data has {}, indices {}", i, data[i], indices[i]);
    }
    dims.push_back(indices[i]);
  }
  for (int i = static_cast<int>(batch + depth); i < data.rank(); ++i) dims.push_back(data[i]);
  NdPlan out{static_cast<int>(batch), static_cast<int>(depth), {}};
  PLIMSOLL_TRY(out.blocks, ir::Shape::make(dims));
  return out;
}

Result<std::vector<TensorType>> infer_gather_nd(const Call& call) {
  PLIMSOLL_TRY(const NdPlan plan, plan_nd(call));
  return std::vector{TensorType{call.type(0).dtype, plan.blocks, {}}};
}

Result<std::vector<TensorType>> infer_scatter_nd(const Call& call) {
  PLIMSOLL_TRY(const NdPlan plan, plan_nd(call));
  if (call.type(2).dtype != call.type(0).dtype || call.shape(2) != plan.blocks) {
    return bad_input("the updates are {}, expects {} of shape {}", ir::to_string(call.type(2)),
                     ir::name(call.type(0).dtype), ir::to_string(plan.blocks));
  }
  return std::vector{TensorType{call.type(0).dtype, call.shape(0), {}}};
}

// body(position in the blocks, position in the data) for rows inside.
template <typename Body>
void for_each_block_element(const Evaluation& e, Body body) {
  const ir::Shape& data = e.in(0).type.shape;
  const Array& indices = e.in(1);
  const auto plan = plan_nd(Call({&e.in(0).type, &indices.type}, e.attributes));
  PLIMSOLL_CHECK(plan.has_value());
  if (plan->blocks.elements() == 0) return;
  const auto strides = data.strides();
  const std::int64_t block = data.elements(plan->batch_dims + plan->depth, data.rank());
  const std::int64_t batches = data.elements(0, plan->batch_dims);
  const std::int64_t batch_size = data.elements(plan->batch_dims, data.rank());
  const std::int64_t rows = plan->blocks.elements() / block;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t at = row / (rows / batches) * batch_size;
    bool inside = true;
    for (int d = 0; d < plan->depth; ++d) {
      const int axis = plan->batch_dims + d;
      const std::int64_t place =
          resolve(indices.integers[static_cast<std::size_t>(row * plan->depth + d)], data[axis]);
      inside = inside && place >= 0;
      at += place * strides[static_cast<std::size_t>(axis)];
    }
    for (std::int64_t k = 0; inside && k < block; ++k) body(row * block + k, at + k);
  }
}

void evaluate_gather_nd(const Evaluation& e) {
  for_each_block_element(
      e, [&](std::int64_t i, std::int64_t j) { e.out().copy_element(i, e.in(0), j); });
}

void evaluate_scatter_nd(const Evaluation& e) {
  copy_all(e.out(), e.in(0));
  const Reduction reduction = reduction_of(e.attributes);
  for_each_block_element(
      e, [&](std::int64_t i, std::int64_t j) { combine(e.out(), j, e.in(2), i, reduction); });
}

int batch_dims_of(const Backward& g) {
  return static_cast<int>(g.attributes.integer("batch_dims"));
}

std::vector<Var> gather_nd_gradient(const Backward& g) {
  return {scatter_nd(zeros_like(g.in(0)), g.in(1), g.dy(), "add", batch_dims_of(g)), Var()};
}

std::vector<Var> scatter_nd_gradient(const Backward& g) {
  return scatter_gradient(
      g, [&](Var from) { return gather_nd(from, g.in(1), batch_dims_of(g)); },
      [&](Var into, Var what, std::string_view reduction) {
        return scatter_nd(into, g.in(1), what, reduction, batch_dims_of(g));
      });
}

}  // namespace

Var gather_nd(Var data, Var indices, int batch_dims) {
  return data.builder().call1("gather_nd", {data, indices},
                              {{"batch_dims", std::int64_t{batch_dims}}});
}

Var scatter_nd(Var data, Var indices, Var updates, std::string_view reduction, int batch_dims) {
  return data.builder().call1(
      "scatter_nd", {data, indices, updates},
      {{"reduction", std::string(reduction)}, {"batch_dims", std::int64_t{batch_dims}}});
}

std::vector<OpDefinition> indexing_nd_definitions() {
  const AttributeSpec batch_dims = attribute::integer("batch_dims", 0);
  std::vector<OpDefinition> out{
      moving_definition("gather_nd", 2, infer_gather_nd, Gradient(gather_nd_gradient),
                        evaluate_gather_nd)
          .having({batch_dims}),
      moving_definition("scatter_nd", 3, infer_scatter_nd, Gradient(scatter_nd_gradient),
                        evaluate_scatter_nd)
          .having({batch_dims, reduction_attribute()}),
  };
  out.back().in_place = InPlace::over(0);
  return out;
}

}  // namespace plimsoll::ops
