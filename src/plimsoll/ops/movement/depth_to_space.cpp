#include "plimsoll/base/checked.h"
#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/movement/shaping.h"

namespace plimsoll::ops {
namespace {

Result<std::int64_t> block_of(const Call& call) {
  PLIMSOLL_TRY(const std::int64_t block, required_integer(call.attributes(), "block"));
  if (block < 1) return bad_input("block is {}, expects 1 or more", block);
  if (call.shape(0).rank() != 4) {
    return bad_input("input {} is not [N,C,H,W]", ir::to_string(call.shape(0)));
  }
  return block;
}

Result<std::vector<TensorType>> infer_depth_to_space(const Call& call) {
  PLIMSOLL_TRY(const std::int64_t block, block_of(call));
  const ir::Shape& x = call.shape(0);
  const auto area = checked_multiply(block, block);
  if (!area || x[1] % *area != 0) {
    return bad_input("{} channels do not fill blocks of {} x {}", x[1], block, block);
  }
  const auto height = checked_multiply(x[2], block);
  const auto width = checked_multiply(x[3], block);
  if (!height || !width) return bad_input("the size of the result does not fit 64 bits");
  PLIMSOLL_TRY(const ir::Shape shape,
               ir::Shape::make(ir::Ints{x[0], x[1] / *area, *height, *width}));
  return std::vector{TensorType{call.type(0).dtype, shape, {}}};
}

Result<std::vector<TensorType>> infer_space_to_depth(const Call& call) {
  PLIMSOLL_TRY(const std::int64_t block, block_of(call));
  const ir::Shape& x = call.shape(0);
  if (x[2] % block != 0 || x[3] % block != 0) {
    return bad_input("{} is not made of blocks of {} x {}", ir::to_string(x), block, block);
  }
  const auto area = checked_multiply(block, block);
  const auto channels = area ? checked_multiply(x[1], *area) : area;
  if (!channels) return bad_input("the size of the result does not fit 64 bits");
  PLIMSOLL_TRY(const ir::Shape shape,
               ir::Shape::make(ir::Ints{x[0], *channels, x[2] / block, x[3] / block}));
  return std::vector{TensorType{call.type(0).dtype, shape, {}}};
}

// body(position in the deep tensor [N, C b b, H, W], position in the wide one [N, C, H b, W b])
template <typename Body>
void for_each_pair(const ir::Shape& deep, const ir::Shape& wide, std::int64_t block,
                   bool depth_first, Body body) {
  const Index strides = deep.strides();
  for_each_element(wide, [&](std::int64_t i, const Index& at) {
    const std::int64_t inside = at[2] % block * block + at[3] % block;
    const std::int64_t channel =
        depth_first ? inside * wide[1] + at[1] : at[1] * block * block + inside;
    body(dot({at[0], channel, at[2] / block, at[3] / block}, strides, 4), i);
  });
}

bool is_depth_first(const AttributeReader& attributes) {
  return attributes.text("mode") == "DCR";
}

void evaluate_depth_to_space(const Evaluation& e) {
  for_each_pair(e.in(0).type.shape, e.out().type.shape, e.attributes.integer("block"),
                is_depth_first(e.attributes), [&](std::int64_t deep, std::int64_t wide) {
                  e.out().copy_element(wide, e.in(0), deep);
                });
}

void evaluate_space_to_depth(const Evaluation& e) {
  for_each_pair(e.out().type.shape, e.in(0).type.shape, e.attributes.integer("block"),
                is_depth_first(e.attributes), [&](std::int64_t deep, std::int64_t wide) {
                  e.out().copy_element(deep, e.in(0), wide);
                });
}

std::vector<Var> depth_to_space_gradient(const Backward& g) {
  return {g.builder.call1("space_to_depth", {g.dy()}, g.attributes.given())};
}

std::vector<Var> space_to_depth_gradient(const Backward& g) {
  return {g.builder.call1("depth_to_space", {g.dy()}, g.attributes.given())};
}

OpDefinition block_definition(std::string_view name, InferRule infer, GradientRule gradient,
                              EvaluateRule evaluate) {
  return moving_definition(name, 1, infer, Gradient(gradient), evaluate)
      .having({attribute::integer("block"), attribute::choice("mode", {"DCR", "CRD"})});
}

}  // namespace

Var depth_to_space(Var x, std::int64_t block, std::string_view mode) {
  return x.builder().call1("depth_to_space", {x}, {{"block", block}, {"mode", std::string(mode)}});
}

Var space_to_depth(Var x, std::int64_t block, std::string_view mode) {
  return x.builder().call1("space_to_depth", {x}, {{"block", block}, {"mode", std::string(mode)}});
}

std::vector<OpDefinition> depth_to_space_definitions() {
  return {
      block_definition("depth_to_space", infer_depth_to_space, depth_to_space_gradient,
                       evaluate_depth_to_space),
      block_definition("space_to_depth", infer_space_to_depth, space_to_depth_gradient,
                       evaluate_space_to_depth),
  };
}

}  // namespace plimsoll::ops
