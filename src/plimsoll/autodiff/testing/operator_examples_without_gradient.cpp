#include "plimsoll/autodiff/testing/operator_examples.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/update/update.h"

namespace plimsoll::autodiff {
namespace {

using ops::Array;

OperatorExample plain(std::string op, std::vector<std::optional<Array>> inputs,
                      ir::Attributes attributes = {}) {
  return {std::move(op), "plain", std::move(inputs), std::move(attributes), false, {}};
}

Array bools(std::vector<std::int64_t> values) {
  return example_integers({2, 3}, std::move(values), ir::DType::kBool);
}

}  // namespace

std::vector<OperatorExample> examples_without_gradient() {
  const Array x = example_signed({2, 3}, 0.5, 2, 1);
  const Array y = example_signed({2, 3}, 0.5, 2, 2);
  const Array positive = example_reals({2, 3}, 0.5, 2, 3);
  const Array row = example_reals({3}, 0.5, 2, 4);
  const ir::Attributes behind_two{{"first", std::int64_t{2}}};  // a part of a weight of six
  const Array step = example_integers({}, {3});
  const Array whole = example_integers({2}, {5, 9});
  const Array places = example_integers({2}, {1, 2});
  const Array a = bools({0, 1, 1, 0, 0, 1});
  const Array b = bools({1, 1, 0, 0, 1, 1});
  const std::string number = "fp32";
  std::vector<OperatorExample> out{
      plain("argmax", {x}),
      plain("argmin", {x}),
      plain("bit_and", {whole, places}),
      plain("bit_or", {whole, places}),
      plain("bit_xor", {whole, places}),
      plain("bit_not", {whole}),
      plain("bit_shift", {whole, places}),
      plain("bit_cast", {whole}, {{"to", std::string("uint64")}}),
      plain("decode_weight", {example_encoded(3, 32, 8)}, example_encoded_attributes(3, 32)),
      plain("encoded_gather", {example_encoded(5, 8, 9), places}, example_encoded_attributes(5, 8)),
      plain("one_hot", {places}, {{"depth", std::int64_t{3}}, {"dtype", number}}),
      plain("fill", {}, {{"shape", ir::Ints{2, 3}}, {"dtype", number}}),
      plain("random_uniform", {example_integers({}, {3}, ir::DType::kU64)},
            {{"shape", ir::Ints{2, 3}}, {"dtype", number}, {"low", -1.0}}),
      plain("iota", {}, {{"shape", ir::Ints{2, 3}}, {"dtype", number}}),
      plain("logical_not", {a}),
      plain("inside_mask", {x}),
      plain("positive_mask", {x}),
      plain("sgd", {x, y}),
      plain("momentum", {x, y, y}),
      plain("adam", {x, y, y, positive, step}),
      plain("adamw", {x, y, y, positive, step}),
      plain("momentum", {x, y, row}, behind_two),
      plain("adam", {x, y, row, row, step}, behind_two),
      plain("adamw", {x, y, row, row, step}, behind_two),
      plain("increment", {whole}),
      plain("accumulate", {x, y}),
      plain("broadcast", {x}),
      plain("batch_norm_update", {row, row, row, row}, {{"count", std::int64_t{4}}}),
  };
  std::vector<std::optional<Array>> group;
  for (const Array* kind : {&x, &y, &y, &positive})
    group.insert(group.end(), static_cast<std::size_t>(ops::kUpdateGroup), *kind);
  group.push_back(step);
  out.push_back(plain("adamw_group", group));
  const std::vector<std::optional<Array>> norms(std::size_t{4} * ops::kStatisticsGroup, row);
  ir::Ints counts;
  for (int norm = 1; norm <= ops::kStatisticsGroup; ++norm) counts.push_back(norm);
  out.push_back(plain("batch_norm_update_group", norms, {{"counts", counts}}));
  const ops::RunParts run = ops::run_parts({std::ssize(x.reals), std::ssize(row.reals)},
                                           x.type.dtype, ops::kRunAlignment, 1);
  const Array part =
      Array::of_reals({run.part}, std::vector<double>(static_cast<std::size_t>(run.part), 0.5));
  out.push_back(plain("scatter_sums", {x, row}));
  out.push_back(plain("own_part", {x, row}));
  out.push_back(plain("gather_update", {part, x, row}));
  // A piece of x: all of it but the first element and the last.
  const std::int64_t inside = std::ssize(x.reals) - 2;
  const ir::Attributes range{{"range", ir::Ints{1, inside}}};
  const ops::RunParts piece = ops::run_parts({inside}, x.type.dtype, ops::kRunAlignment, 1);
  out.push_back(plain("own_part", {x}, range));
  out.push_back(plain(
      "gather_update",
      {Array::of_reals({piece.part}, std::vector<double>(static_cast<std::size_t>(piece.part), 2)),
       x},
      range));
  const std::vector<ir::Shape> shapes{x.type.shape, row.type.shape};
  out.push_back(plain("gather_weights", {part}, {{"shapes", ops::shapes_attribute(shapes)}}));
  for (const auto* op : {"sign", "floor", "ceil", "round", "is_nan", "is_inf"})
    out.push_back(plain(op, {x}));
  for (const auto* op : {"equal", "less", "less_equal", "greater", "greater_equal"})
    out.push_back(plain(op, {x, y}));
  for (const auto* op : {"logical_and", "logical_or", "logical_xor"})
    out.push_back(plain(op, {a, b}));
  return out;
}

}  // namespace plimsoll::autodiff
