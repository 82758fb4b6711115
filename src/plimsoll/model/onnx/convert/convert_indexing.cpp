// Operators that pick elements by index or by value.
#include <algorithm>
#include <map>
#include <numeric>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

Status gather(OperatorCall& call) {
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", 0), call.rank(0)));
  if (!call.has(1)) return bad_input("indices (input 1) are missing");
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.known(1), call.shape(0)[axis]));
  return call.done(
      call.builder().call1("gather", {call.in(0), call.in(1)}, {{"axis", std::int64_t{axis}}}));
}

Status gather_elements(OperatorCall& call) {
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", 0), call.rank(0)));
  if (!call.has(1)) return bad_input("indices (input 1) are missing");
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.known(1), call.shape(0)[axis]));
  return call.done(call.builder().call1("gather_elements", {call.in(0), call.in(1)},
                                        {{"axis", std::int64_t{axis}}}));
}

// Known index tuples (the last axis) must lie inside the axes they address.
Status check_tuples(const Array* indices, const ir::Shape& data, std::int64_t batch_dims) {
  if (indices == nullptr || indices->type.shape.rank() == 0) return {};
  const std::int64_t width = indices->type.shape[indices->type.shape.rank() - 1];
  if (width + batch_dims > data.rank())
    return bad_input("its indices have {} places for rank {}", width, data.rank());
  for (std::size_t i = 0; i < indices->integers.size(); ++i) {
    const std::int64_t extent =
        data[static_cast<int>(batch_dims + static_cast<std::int64_t>(i) % width)];
    const std::int64_t index = indices->integers[i];
    if (index < -extent || index >= extent)
      return bad_input("index {} is outside an extent of {}", index, extent);
  }
  return {};
}

Status gather_nd(OperatorCall& call) {
  const std::int64_t batch_dims = call.integer("batch_dims", 0);
  if (!call.has(1)) return bad_input("indices (input 1) are missing");
  if (batch_dims < 0 || batch_dims >= call.rank(0))
    return bad_input("batch_dims {} makes no sense", batch_dims);
  PLIMSOLL_RETURN_IF_ERROR(check_tuples(call.known(1), call.shape(0), batch_dims));
  return call.done(
      call.builder().call1("gather_nd", {call.in(0), call.in(1)}, {{"batch_dims", batch_dims}}));
}

Status scatter_elements(OperatorCall& call) {
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", 0), call.rank(0)));
  if (!call.has(1)) return bad_input("indices (input 1) are missing");
  PLIMSOLL_RETURN_IF_ERROR(check_indices(call.known(1), call.shape(0)[axis]));
  return call.done(call.builder().call1(
      "scatter_elements", {call.in(0), call.in(1), call.in(2)},
      {{"axis", std::int64_t{axis}}, {"reduction", call.text("reduction", "none")}}));
}

Status scatter_nd(OperatorCall& call) {
  if (!call.has(1)) return bad_input("indices (input 1) are missing");
  PLIMSOLL_RETURN_IF_ERROR(check_tuples(call.known(1), call.shape(0), 0));
  return call.done(call.builder().call1("scatter_nd", {call.in(0), call.in(1), call.in(2)},
                                        {{"reduction", call.text("reduction", "none")}}));
}

Status compress(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints condition, call.known_integers(1, "the condition"));
  Var x = call.in(0);
  int axis = 0;
  if (call.has_attribute("axis")) {
    PLIMSOLL_TRY(axis, normal_axis_of(call.integer("axis", 0), call.rank(0)));
  } else {
    x = reshape_to(x, {call.shape(0).elements()});
  }
  ir::Ints kept;
  const std::int64_t most =
      std::min<std::int64_t>(static_cast<std::int64_t>(condition.size()), x.dim(axis));
  for (std::int64_t i = 0; i < most; ++i) {
    if (condition[static_cast<std::size_t>(i)] != 0) kept.push_back(i);
  }
  const ir::Shape shape{static_cast<std::int64_t>(kept.size())};
  const Var indices = call.constant(Array::of_integers(shape, std::move(kept)));
  return call.done(call.builder().call1("gather", {x, indices}, {{"axis", std::int64_t{axis}}}));
}

// Where a computed value is not zero: room for the capacity, filled up with one past the end of
// each axis (bounded_axes.h). The place of each is the number of those before it.
Status non_zero_in_a_run(OperatorCall& call) {
  Builder& builder = call.builder();
  const ir::Shape& shape = call.shape(0);
  const std::int64_t most = shape.elements();
  if (shape.rank() == 0 || most == 0)
    return bad_input("a scalar, or nothing, is computed in a run");
  const std::string_view name = call.wants(0) ? call.node().outputs[0] : std::string_view();
  const std::int64_t room = call.importer().room_for(name, most);
  if (room < 1) return bad_input("a capacity of {} of {} makes no sense", room, most);
  const Var mask = reshape_to(cast_to(call.in(0), DType::kBool), {most});
  const Var ones = cast_to(mask, DType::kI64);
  const Var before =
      builder.call1("cumsum", {ones}, {{"axis", std::int64_t{0}}, {"exclusive", std::int64_t{1}}});
  const Var outside = call.constant(Array::of_integers({1}, {room}));
  const Var place = builder.call1("where", {mask, before, outside});
  std::vector<Var> rows;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Var ends = builder.call1("fill", {},
                                   {{"shape", ir::Ints{room}},
                                    {"dtype", std::string("int64")},
                                    {"value", std::int64_t{shape[axis]}}});
    const Var from = reshape_to(counted(builder, dims_of(shape), axis), {most});
    const Var list = builder.call1("scatter_elements", {ends, place, from},
                                   {{"axis", std::int64_t{0}}, {"reduction", std::string("none")}});
    rows.push_back(reshape_to(list, {1, room}));
  }
  const Var places = rows.size() == 1 ? rows.front() : concat_all(rows, 0);
  call.importer().found(places, reduce("reduce_sum", ones, {0}, false));
  if (room < most)
    PLIMSOLL_RETURN_IF_ERROR(call.importer().limit(call.importer().all_found().size() - 1, room));
  return call.done(places);
}

Status non_zero(OperatorCall& call) {
  const Array* x = call.known(0);
  if (x == nullptr) return non_zero_in_a_run(call);
  const int rank = std::max(x->type.shape.rank(), 1);
  const auto strides = x->type.shape.strides();
  std::vector<ir::Ints> places(static_cast<std::size_t>(rank));
  for (std::int64_t i = 0; i < x->elements(); ++i) {
    if (x->number(i) == 0) continue;
    std::int64_t rest = i;
    for (int axis = 0; axis < rank; ++axis) {
      const std::int64_t stride =
          x->type.shape.rank() == 0 ? 1 : strides[static_cast<std::size_t>(axis)];
      places[static_cast<std::size_t>(axis)].push_back(rest / stride);
      rest %= stride;
    }
  }
  ir::Ints flat;
  for (const ir::Ints& row : places) flat.insert(flat.end(), row.begin(), row.end());
  const ir::Shape shape{rank, static_cast<std::int64_t>(places.front().size())};
  return call.done(Array::of_integers(shape, std::move(flat)));
}

// The slices of an array along an axis (or its elements), compared as lists of numbers.
struct Slices {
  std::vector<std::vector<double>> rows;
  ir::Shape shape;  // of the array
  int axis = 0;
};

Slices slices_of(const Array& x, std::optional<int> axis) {
  Slices out;
  out.shape = axis ? x.type.shape : ir::Shape{x.elements()};
  out.axis = axis.value_or(0);
  const std::int64_t inner = out.shape.elements(out.axis + 1, out.shape.rank());
  const std::int64_t count = out.shape[out.axis];
  out.rows.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    out.rows[static_cast<std::size_t>(i / inner % count)].push_back(x.number(i));
  }
  return out;
}

Status unique(OperatorCall& call) {
  PLIMSOLL_TRY(const Array* x, call.must_know(0, "its input"));
  std::optional<int> axis;
  if (call.has_attribute("axis")) {
    PLIMSOLL_TRY(axis, normal_axis_of(call.integer("axis", 0), call.rank(0)));
  }
  const Slices slices = slices_of(*x, axis);
  std::map<std::vector<double>, std::int64_t> seen;
  std::vector<std::int64_t> first;  // of each distinct slice, where it stands first
  ir::Ints inverse;
  ir::Ints counts;
  for (std::size_t i = 0; i < slices.rows.size(); ++i) {
    const auto [place, fresh] =
        seen.emplace(slices.rows[i], static_cast<std::int64_t>(first.size()));
    if (fresh) {
      first.push_back(static_cast<std::int64_t>(i));
      counts.push_back(0);
    }
    inverse.push_back(place->second);
    ++counts[static_cast<std::size_t>(place->second)];
  }
  if (call.integer("sorted", 1) != 0) {
    std::vector<std::int64_t> rank_of(first.size());
    ir::Ints sorted_first;
    ir::Ints sorted_counts;
    for (const auto& [row, id] : seen) {
      rank_of[static_cast<std::size_t>(id)] = static_cast<std::int64_t>(sorted_first.size());
      sorted_first.push_back(first[static_cast<std::size_t>(id)]);
      sorted_counts.push_back(counts[static_cast<std::size_t>(id)]);
    }
    for (std::int64_t& id : inverse) id = rank_of[static_cast<std::size_t>(id)];
    first = std::move(sorted_first);
    counts = std::move(sorted_counts);
  }
  const auto list = [](const ir::Ints& values) {
    return Array::of_integers({static_cast<std::int64_t>(values.size())}, values);
  };
  call.out_known(1, list(first));
  call.out_known(2, list(inverse));
  call.out_known(3, list(counts));
  Var flat = call.in(0);
  if (!axis) flat = reshape_to(flat, {x->elements()});
  return call.done(call.builder().call1("gather", {flat, call.constant(list(first))},
                                        {{"axis", std::int64_t{slices.axis}}}));
}

Status top_k(OperatorCall& call) {
  std::int64_t k = call.integer("k", 1);
  if (call.version() >= 10) {
    PLIMSOLL_TRY(k, call.known_integer(1, "k", 1));
  }
  const auto made = call.builder().call(
      "top_k", {call.in(0)},
      {{"k", k}, {"axis", call.integer("axis", -1)}, {"largest", call.integer("largest", 1)}});
  call.out(0, made[0]);
  if (made.size() > 1) call.out(1, made[1]);
  return {};
}

Status cumulative_sum(OperatorCall& call) {
  PLIMSOLL_TRY(const std::int64_t axis, call.known_integer(1, "axis", 0));
  return call.done(call.builder().call1("cumsum", {call.in(0)},
                                        {{"axis", axis},
                                         {"exclusive", call.integer("exclusive", 0)},
                                         {"reverse", call.integer("reverse", 0)}}));
}

// Shifted by `by` along the axis, with ones where nothing comes from; negative: towards the front.
Var shifted_with_ones(Var x, int axis, std::int64_t by) {
  ir::Ints pads(static_cast<std::size_t>(2 * x.rank()), 0);
  pads[static_cast<std::size_t>(axis)] = by;
  pads[static_cast<std::size_t>(axis + x.rank())] = -by;
  return x.builder().call1("pad", {x}, {{"pads", pads}, {"value", 1.0}});
}

// After the step with shift s every element is the product of the 2s before it and itself: log n
// products.
Status cumulative_product(OperatorCall& call) {
  PLIMSOLL_TRY(const std::int64_t given, call.known_integer(1, "axis", 0));
  PLIMSOLL_TRY(const int axis, normal_axis_of(given, call.rank(0)));
  const std::int64_t way = call.integer("reverse", 0) != 0 ? -1 : 1;
  Var x = call.in(0);
  if (call.integer("exclusive", 0) != 0 && x.dim(axis) > 0) x = shifted_with_ones(x, axis, way);
  for (std::int64_t shift = 1; shift < x.dim(axis) && !call.builder().error(); shift *= 2) {
    x = x * shifted_with_ones(x, axis, way * shift);
  }
  return call.done(x);
}

// The update takes the place of elements from write_indices[b] on, or around the end when circular.
Status tensor_scatter(OperatorCall& call) {
  if (!call.has(0) || !call.has(1) || call.rank(0) != call.rank(1))
    return bad_input("the update does not fit the cache");
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", -2), call.rank(0)));
  const std::string mode = call.text("mode", "linear");
  if (axis == 0 || (mode != "linear" && mode != "circular"))
    return bad_input("axis {} or mode '{}' makes no sense", axis, mode);
  Builder& builder = call.builder();
  const Var update = call.in(1);
  Var place = counted(builder, dims_of(update.shape()), axis);
  if (call.has(2)) {
    if (call.shape(2) != ir::Shape{update.dim(0)})
      return bad_input("write_indices do not fit the batch");
    ir::Ints along_batch(static_cast<std::size_t>(update.rank()), 1);
    along_batch.front() = update.dim(0);
    place = place + reshape_to(cast_to(call.in(2), DType::kI64), along_batch);
  }
  if (mode == "circular")
    place =
        builder.call1("mod", {place, ops::number(place, static_cast<double>(call.shape(0)[axis]))});
  return call.done(builder.call1("scatter_elements", {call.in(0), place, update},
                                 {{"axis", std::int64_t{axis}}}));
}

// Element t of a sequence of length n comes from n - 1 - t while t < n, from t after that.
Status reverse_sequence(OperatorCall& call) {
  const ir::Shape& shape = call.shape(0);
  PLIMSOLL_TRY(const int time, normal_axis_of(call.integer("time_axis", 0), shape.rank()));
  PLIMSOLL_TRY(const int batch, normal_axis_of(call.integer("batch_axis", 1), shape.rank()));
  if (!call.has(1) || call.shape(1) != ir::Shape{shape[batch]})
    return bad_input("sequence_lens do not fit the batch");
  Builder& builder = call.builder();
  ir::Ints along_batch(static_cast<std::size_t>(shape.rank()), 1);
  along_batch[static_cast<std::size_t>(batch)] = shape[batch];
  const Var lengths = reshape_to(cast_to(call.in(1), DType::kI64), along_batch);
  const Var t = counted(builder, dims_of(shape), time);
  const Var back = (lengths - t) - ops::number(t, 1);
  const Var from = builder.call1("where", {builder.call1("less", {t, lengths}), back, t});
  return call.done(
      builder.call1("gather_elements", {call.in(0), from}, {{"axis", std::int64_t{time}}}));
}

Status no_suppression(OperatorCall&) {
  return bad_input(
      "how many boxes remain depends on data: shapes that depend on data are not supported");
}

}  // namespace

std::vector<Operator> indexing_operators() {
  return {
      same("gather", gather),
      same("gather_elements", gather_elements),
      same("gather_nd", gather_nd),
      same("scatter_elements", scatter_elements),
      {"Scatter", scatter_elements, "axis"},
      same("scatter_nd", scatter_nd),
      {"Compress", compress, "axis"},
      {"NonZero", non_zero, {}, {}, false},
      {"Unique", unique, "axis sorted"},
      {"NonMaxSuppression", no_suppression, "center_point_box", {}, false},
      {"TopK", top_k, "axis k largest sorted"},
      {"CumSum", cumulative_sum, "exclusive reverse"},
      {"CumProd", cumulative_product, "exclusive reverse"},
      {"TensorScatter", tensor_scatter, "axis mode"},
      {"ReverseSequence", reverse_sequence, "batch_axis time_axis"},
  };
}

}  // namespace plimsoll::model::onnx
