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

// The rank of data, and no larger than data but along the axis.
Result<int> elements_axis(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.type(1)));
  const ir::Shape& data = call.shape(0);
  const ir::Shape& indices = call.shape(1);
  PLIMSOLL_TRY(const int axis, normal_axis(call.attributes().integer("axis"), data.rank()));
  bool fits = data.rank() == indices.rank();
  for (int i = 0; fits && i < data.rank(); ++i) fits = i == axis || indices[i] <= data[i];
  if (!fits) {
    return bad_input("indices {} do not fit data {} along axis {}", ir::to_string(indices),
                     ir::to_string(data), axis);
  }
  return axis;
}

Result<std::vector<TensorType>> infer_gather_elements(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(elements_axis(call));
  return std::vector{TensorType{call.type(0).dtype, call.shape(1), {}}};
}

Result<std::vector<TensorType>> infer_scatter_elements(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(elements_axis(call));
  if (call.type(2).dtype != call.type(0).dtype || call.shape(2) != call.shape(1)) {
    return bad_input("the updates are {}, expects {} of the indices' shape {}",
                     ir::to_string(call.type(2)), ir::name(call.type(0).dtype),
                     ir::to_string(call.shape(1)));
  }
  return std::vector{TensorType{call.type(0).dtype, call.shape(0), {}}};
}

// body(position in the indices, position in the data) for indices inside.
template <typename Body>
void for_each_named(const ir::Shape& data, const Array& indices, const AttributeReader& attributes,
                    Body body) {
  const auto axis = static_cast<std::size_t>(verified_axis(attributes, data));
  const Index strides = data.strides();
  for_each_element(indices.type.shape, [&](std::int64_t i, Index index) {
    index[axis] =
        resolve(indices.integers[static_cast<std::size_t>(i)], data[static_cast<int>(axis)]);
    if (index[axis] >= 0) body(i, dot(index, strides, data.rank()));
  });
}

void evaluate_gather_elements(const Evaluation& e) {
  for_each_named(e.in(0).type.shape, e.in(1), e.attributes,
                 [&](std::int64_t i, std::int64_t j) { e.out().copy_element(i, e.in(0), j); });
}

void evaluate_scatter_elements(const Evaluation& e) {
  copy_all(e.out(), e.in(0));
  const Reduction reduction = reduction_of(e.attributes);
  for_each_named(e.in(0).type.shape, e.in(1), e.attributes, [&](std::int64_t i, std::int64_t j) {
    combine(e.out(), j, e.in(2), i, reduction);
  });
}

std::vector<Var> gather_elements_gradient(const Backward& g) {
  const int axis = static_cast<int>(g.attributes.integer("axis"));
  return {scatter_elements(zeros_like(g.in(0)), g.in(1), g.dy(), axis, "add"), Var()};
}

std::vector<Var> scatter_elements_gradient(const Backward& g) {
  const int axis = static_cast<int>(g.attributes.integer("axis"));
  return scatter_gradient(
      g, [&](Var from) { return gather_elements(from, g.in(1), axis); },
      [&](Var into, Var what, std::string_view reduction) {
        return scatter_elements(into, g.in(1), what, axis, reduction);
      });
}

}  // namespace

Var gather_elements(Var data, Var indices, int axis) {
  return data.builder().call1("gather_elements", {data, indices}, {{"axis", std::int64_t{axis}}});
}

Var scatter_elements(Var data, Var indices, Var updates, int axis, std::string_view reduction) {
  return data.builder().call1(
      "scatter_elements", {data, indices, updates},
      {{"axis", std::int64_t{axis}}, {"reduction", std::string(reduction)}});
}

std::vector<OpDefinition> indexing_elements_definitions() {
  const AttributeSpec axis = attribute::integer("axis", 0);
  std::vector<OpDefinition> out{
      moving_definition("gather_elements", 2, infer_gather_elements,
                        Gradient(gather_elements_gradient), evaluate_gather_elements)
          .having({axis}),
      moving_definition("scatter_elements", 3, infer_scatter_elements,
                        Gradient(scatter_elements_gradient), evaluate_scatter_elements)
          .having({axis, reduction_attribute()}),
  };
  out.back().in_place = InPlace::over(0);
  return out;
}

}  // namespace plimsoll::ops
