// Operators that make tensors from nothing or from a shape.
#include <algorithm>
#include <cmath>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/format/tensor_content.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

ir::Shape list_shape(std::size_t size) {
  return {static_cast<std::int64_t>(size)};
}

Status constant(OperatorCall& call) {
  const auto reals = [](const std::vector<float>& list) {
    return std::vector<double>(list.begin(), list.end());
  };
  if (const auto* value = call.attribute("value"); value != nullptr && value->has_t) {
    PLIMSOLL_TRY(const TensorFile file, read_tensor(value->t));
    PLIMSOLL_TRY(const ir::TensorType type, type_of(file));
    if (type.shape.elements() > kMostFolded) return bad_input("its value is too large");
    PLIMSOLL_TRY(Array array, array_of(file, nullptr));
    call.out_known(0, std::move(array));
  } else if (const auto* real = call.attribute("value_float"); real != nullptr) {
    call.out_known(0, Array::of_reals({}, {static_cast<double>(real->f)}, DType::kF32));
  } else if (const auto* list = call.attribute("value_floats"); list != nullptr) {
    call.out_known(
        0, Array::of_reals(list_shape(list->floats.size()), reals(list->floats), DType::kF32));
  } else if (const auto* integer = call.attribute("value_int"); integer != nullptr) {
    call.out_known(0, Array::of_integers({}, {integer->i}));
  } else if (const auto* integers = call.attribute("value_ints"); integers != nullptr) {
    call.out_known(0, Array::of_integers(list_shape(integers->ints.size()), integers->ints));
  } else {
    return bad_input(
        "its value is neither a tensor nor numbers (strings and sparse tensors are not supported)");
  }
  return {};
}

Status constant_of_shape(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints dims, call.known_integers(0, "the shape"));
  PLIMSOLL_TRY(const ir::Shape shape, ir::Shape::make(dims));
  Array value = Array::of_reals({1}, {0}, DType::kF32);
  if (const auto* attribute = call.attribute("value"); attribute != nullptr && attribute->has_t) {
    PLIMSOLL_TRY(const TensorFile file, read_tensor(attribute->t));
    PLIMSOLL_TRY(const ir::TensorType type, type_of(file));
    if (type.shape.elements() != 1)
      return bad_input("its value has {} elements, expects 1", type.shape.elements());
    PLIMSOLL_TRY(value, array_of(file, nullptr));
  }
  const ir::TensorType type{value.type.dtype, shape, {}};
  if (!ir::checked_bytes(type) || shape.elements() > kMostMade)
    return bad_input("{} is too large", ir::to_string(type));
  // A large table of one number, asked for with a constant shape, stands for a weight whose file
  // was left away (the models of ONNX's own test suite).
  const bool weight = call.importer().tensor(call.input(0)).file != nullptr && value.is_real() &&
                      shape.rank() > 0 && shape.elements() > 1;
  if (weight) {
    call.out(0, call.importer().filled_weight(call.node().outputs.front(), type, value.number(0)));
  } else if (shape.elements() <= 4096) {
    Array out(type);
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      if (out.is_real())
        out.reals[static_cast<std::size_t>(i)] = value.reals.front();
      else
        out.integers[static_cast<std::size_t>(i)] = value.integers.front();
    }
    call.out_known(0, std::move(out));
  } else {
    call.out(0, call.builder().fill(type, value.number(0)));
  }
  return {};
}

Status shape_of(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its input is missing");
  const ir::Ints dims = dims_of(call.shape(0));
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto place = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = place(call.integer("start", 0));
  const std::int64_t end = std::max(start, place(call.integer("end", rank)));
  ir::Ints part(dims.begin() + start, dims.begin() + end);
  const ir::Shape shape = list_shape(part.size());
  return call.done(Array::of_integers(shape, std::move(part)));
}

Status size_of(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its input is missing");
  return call.done(Array::of_integers({}, {call.shape(0).elements()}));
}

Status range_of(OperatorCall& call) {
  PLIMSOLL_TRY(const Array* start, call.must_know(0, "start"));
  PLIMSOLL_TRY(const Array* limit, call.must_know(1, "limit"));
  PLIMSOLL_TRY(const Array* delta, call.must_know(2, "delta"));
  if (start->elements() != 1 || limit->elements() != 1 || delta->elements() != 1) {
    return bad_input("start, limit and delta are to be one number each");
  }
  const double step = delta->number(0);
  const double steps = std::ceil((limit->number(0) - start->number(0)) / step);
  if (step == 0 || std::isnan(steps) || steps > static_cast<double>(kMostFolded)) {
    return bad_input("a range from {} to {} by {} is too long", start->number(0), limit->number(0),
                     step);
  }
  const auto count = static_cast<std::int64_t>(std::max(steps, 0.0));
  Array out({start->type.dtype, {count}, {}});
  for (std::int64_t i = 0; i < count; ++i) {
    if (out.is_real()) {
      out.reals[static_cast<std::size_t>(i)] = start->number(0) + static_cast<double>(i) * step;
    } else {
      out.integers[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(
          static_cast<std::uint64_t>(start->integers[0]) +
          static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(delta->integers[0]));
    }
  }
  out.round();
  return call.done(std::move(out));
}

Status eye_like(OperatorCall& call) {
  if (!call.has(0) || call.rank(0) != 2) return bad_input("its input is not of rank 2");
  DType dtype = call.dtype(0);
  if (call.has_attribute("dtype")) {
    PLIMSOLL_TRY(dtype, call.attribute_dtype("dtype", ElementType::kFloat));
  }
  const std::int64_t k = call.integer("k", 0);
  Builder& builder = call.builder();
  const ir::Ints shape = dims_of(call.shape(0));
  const auto index = [&](std::int64_t axis, std::int64_t start) {
    return builder.call1(
        "iota", {},
        {{"shape", shape}, {"dtype", std::string("int64")}, {"axis", axis}, {"start", start}});
  };
  return call.done(cast_to(
      builder.call1("equal",
                    {index(0, std::clamp<std::int64_t>(k, -(1LL << 40), 1LL << 40)), index(1, 0)}),
      dtype));
}

Status one_hot(OperatorCall& call) {
  PLIMSOLL_TRY(const Array* depth_array, call.must_know(1, "depth"));
  if (depth_array->elements() != 1) return bad_input("depth is to be one number");
  const double depth_number = depth_array->number(0);
  if (!(depth_number >= 1 && depth_number < 1e15))
    return bad_input("a depth of {} makes no sense", depth_number);
  const auto depth = static_cast<std::int64_t>(depth_number);
  Builder& builder = call.builder();
  Var indices = cast_to(call.in(0), DType::kI64);
  const Var zero = ops::number(indices, 0);
  const Var wrapped = indices + ops::number(indices, depth_number);
  // What is too small to count from the end is as far outside as what is too large.
  const Var outside = builder.call1("less", {wrapped, zero});
  indices = builder.call1("where", {builder.call1("less", {indices, zero}), wrapped, indices});
  indices = builder.call1("where", {outside, ops::number(indices, depth_number), indices});
  if (!call.has(2)) return bad_input("values (input 2) is missing");
  const DType dtype = call.dtype(2);
  const Array* values = call.known(2);
  const ir::Attributes attributes{{"depth", depth},
                                  {"axis", call.integer("axis", -1)},
                                  {"dtype", std::string(ir::name(dtype))}};
  if (values != nullptr && values->elements() == 2) {
    ir::Attributes filled = attributes;
    filled.set("off", values->number(0));
    filled.set("on", values->number(1));
    return call.done(builder.call1("one_hot", {indices}, filled));
  }
  if (call.shape(2) != ir::Shape{2}) return bad_input("values are to be two numbers");
  ir::Attributes mask = attributes;
  mask.set("dtype", std::string("int32"));
  const Var hot = cast_to(builder.call1("one_hot", {indices}, mask), DType::kBool);
  const Var pair = call.in(2);
  return call.done(builder.call1("where", {hot, select(pair, 0, 1), select(pair, 0, 0)}));
}

}  // namespace

std::vector<Operator> making_operators() {
  return {
      {"Constant",
       constant,
       "sparse_value value value_float value_floats value_int value_ints value_string "
       "value_strings",
       {},
       false},
      {"ConstantOfShape", constant_of_shape, "value", {}, false},
      {"Shape", shape_of, "end start", {}, false},
      {"Size", size_of, {}, {}, false},
      {"Range", range_of, "stash_type", {}, false},
      {"EyeLike", eye_like, "dtype k"},
      {"OneHot", one_hot, "axis"},
  };
}

}  // namespace plimsoll::model::onnx
