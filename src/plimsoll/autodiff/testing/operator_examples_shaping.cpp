#include "plimsoll/autodiff/testing/operator_examples.h"

#include <fmt/format.h>

namespace plimsoll::autodiff {
namespace {

using Examples = std::vector<OperatorExample>;
using ir::Ints;

void add(Examples& out, std::string op, std::string what, const std::vector<ir::Shape>& shapes,
         ir::Attributes attributes) {
  std::vector<std::optional<ops::Array>> inputs;
  std::uint64_t seed = 60;
  for (const ir::Shape& shape : shapes)
    inputs.emplace_back(example_signed(shape, 0.5, 1.5, seed++));
  out.push_back(
      {std::move(op), std::move(what), std::move(inputs), std::move(attributes), true, {}});
}

void add_reshaping(Examples& out) {
  add(out, "reshape", "", {{2, 6}}, {{"shape", Ints{3, 4}}});
  add(out, "reshape", "empty", {{0, 6}}, {{"shape", Ints{3, 0}}});
  add(out, "transpose", "", {{2, 3, 2}}, {{"perm", Ints{2, 0, 1}}});
  add(out, "transpose", "empty", {{2, 0}}, {{"perm", Ints{1, 0}}});
  add(out, "expand", "", {{2, 1}}, {{"shape", Ints{3, 2, 4}}});
  add(out, "expand", "to empty", {{1, 2}}, {{"shape", Ints{0, 2}}});
  add(out, "tile", "", {{2, 3}}, {{"repeats", Ints{2, 3}}});
  add(out, "tile", "no copy", {{2, 3}}, {{"repeats", Ints{0, 1}}});
  add(out, "triangle", "lower", {{2, 3, 3}}, {});
  add(out, "triangle", "upper", {{3, 4}},
      {{"upper", std::int64_t{1}}, {"diagonal", std::int64_t{1}}});
  for (const std::string mode : {"DCR", "CRD"}) {
    const ir::Attributes attributes{{"block", std::int64_t{2}}, {"mode", mode}};
    add(out, "depth_to_space", mode, {{1, 8, 2, 1}}, attributes);
    add(out, "space_to_depth", mode, {{1, 2, 4, 2}}, attributes);
  }
  add(out, "reorder", "", {{1, 2, 2, 2}}, {{"layout", std::string("@0231")}});
}

ir::Attributes range(Ints starts, Ints ends, Ints steps) {
  return {{"starts", std::move(starts)}, {"ends", std::move(ends)}, {"steps", std::move(steps)}};
}

void add_parts(Examples& out) {
  add(out, "slice", "", {{3, 5}}, range({1, 1}, {3, 4}, {1, 1}));
  add(out, "slice", "steps", {{5, 4}}, range({0, 3}, {5, -1}, {2, -1}));
  add(out, "slice", "to empty", {{3, 2}}, range({1, 0}, {1, 2}, {1, 1}));
  add(out, "slice_assign", "", {{3, 4}, {2, 2}}, range({1, 0}, {3, 4}, {1, 2}));
  add(out, "slice_assign", "empty", {{3, 4}, {0, 4}}, range({1, 0}, {1, 4}, {1, 1}));
  add(out, "concat", "", {{2, 1}, {2, 3}, {2, 2}}, {{"axis", std::int64_t{-1}}});
  add(out, "concat", "empty", {{0, 2}, {3, 2}}, {{"axis", std::int64_t{0}}});
  add(out, "split", "", {{2, 6}}, {{"axis", std::int64_t{1}}, {"sizes", Ints{1, 3, 2}}});
  add(out, "split", "empty", {{2, 3}}, {{"axis", std::int64_t{1}}, {"sizes", Ints{0, 3}}});
}

void add_collectives(Examples& out) {
  add(out, "all_reduce", "", {{2, 3}, {4}}, {});
  add(out, "all_reduce", "two ranks", {{2, 3}}, {{"ranks", std::int64_t{2}}});
  add(out, "reduce_scatter", "", {{4, 3}}, {});
  add(out, "all_gather", "", {{2, 3}}, {});
}

void add_padding(Examples& out) {
  add(out, "pad", "", {{2, 3}}, {{"pads", Ints{1, 0, 0, 2}}, {"value", 3.0}});
  add(out, "pad", "crop", {{3, 4}}, {{"pads", Ints{-1, 2, 1, -2}}});
  add(out, "pad", "empty", {{0, 2}}, {{"pads", Ints{1, 0, 1, 0}}});
  for (const std::string mode : {"reflect", "edge", "wrap"}) {
    add(out, "pad", mode, {{2, 3}}, {{"pads", Ints{1, 2, 0, 2}}, {"mode", mode}});
    add(out, "pad", mode + " far", {{3}}, {{"pads", Ints{7, 5}}, {"mode", mode}});
    add(out, "pad", mode + " and crop", {{4}}, {{"pads", Ints{-1, 2}}, {"mode", mode}});
  }
}

void add_resizing(Examples& out) {
  for (const std::string mode : {"nearest", "linear"}) {
    for (const std::string coordinates :
         {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}) {
      const ir::Attributes up{
          {"shape", Ints{1, 1, 5, 4}}, {"mode", mode}, {"coordinates", coordinates}};
      const ir::Attributes down{
          {"shape", Ints{1, 1, 2, 3}}, {"mode", mode}, {"coordinates", coordinates}};
      const std::string what = fmt::format("{} {}", mode, coordinates);
      add(out, "resize", what, {{1, 1, 3, 2}}, up);
      add(out, "resize_grad", what, {{1, 1, 3, 4}}, down);
    }
  }
  add(out, "resize", "empty", {{0, 3}}, {{"shape", Ints{0, 6}}});
}

}  // namespace

std::vector<OperatorExample> shaping_examples() {
  Examples out;
  add_reshaping(out);
  add_parts(out);
  add_padding(out);
  add_collectives(out);
  add_resizing(out);
  return out;
}

std::vector<OperatorExample> indexing_examples() {
  const auto data = example_signed({4, 3}, 0.5, 1.5, 81);
  const auto cube = example_signed({2, 3, 2}, 0.5, 1.5, 82);
  const auto axis = [](std::int64_t value) { return ir::Attributes{{"axis", value}}; };
  const auto twice = example_integers({2, 2}, {1, -1, 1, 0});  // place 1 is read twice
  const auto places = example_integers({2, 3}, {0, 2, 1, 3, 0, -2});
  const auto updates = example_signed({2, 3}, 2.5, 3.5, 83);
  const auto rows = example_integers({2, 2}, {1, 0, 0, 2});
  const auto row_updates = example_signed({2, 2}, 2.5, 3.5, 84);
  Examples out{
      {"gather", "", {data, twice}, axis(0), true, {}},
      {"gather",
       "int32, outside",
       {data, example_integers({3}, {2, 7, -9}, ir::DType::kI32)},
       axis(1),
       true,
       {}},
      {"gather", "empty", {data, example_integers({0}, {})}, axis(0), true, {}},
      {"gather_grad",
       "",
       {example_signed({2, 2, 3}, 0.5, 1.5, 85), twice},
       {{"axis", std::int64_t{0}}, {"shape", Ints{4, 3}}},
       true,
       {}},
      {"gather_grad",
       "into a sum",
       {example_signed({2, 2, 3}, 0.5, 1.5, 85), twice, example_signed({4, 3}, 0.5, 1.5, 86)},
       {{"axis", std::int64_t{0}}, {"shape", Ints{4, 3}}},
       true,
       {}},
      {"gather_grad",
       "some rows",
       {example_signed({2, 2, 3}, 0.5, 1.5, 85), twice, example_signed({2, 3}, 0.5, 1.5, 86)},
       {{"axis", std::int64_t{0}}, {"shape", Ints{2, 3}}, {"rows", Ints{1, 4}}},
       true,
       {}},
      {"gather_elements", "", {data, places}, axis(0), true, {}},
      {"gather_elements",
       "outside",
       {data, example_integers({4, 1}, {0, 9, 1, -9})},
       axis(1),
       true,
       {}},
      {"gather_nd", "", {cube, rows}, {}, true, {}},
      {"gather_nd",
       "batch",
       {cube, example_integers({2, 1}, {2, 0})},
       {{"batch_dims", std::int64_t{1}}},
       true,
       {}},
      {"gather_nd", "empty", {cube, example_integers({0, 3}, {})}, {}, true, {}},
  };
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    const ir::Attributes how{{"reduction", reduction}};
    out.push_back({"scatter_elements", reduction, {data, places, updates}, how, true, {}});
    out.push_back({"scatter_nd", reduction, {cube, rows, row_updates}, how, true, {}});
  }
  out.push_back({"scatter_elements",
                 "add at one place",
                 {data, example_integers({2, 1}, {2, 2}), example_signed({2, 1}, 0.5, 1.5, 86)},
                 {{"axis", std::int64_t{0}}, {"reduction", std::string("add")}},
                 true,
                 {}});
  // A product of two, one with a lone zero, one with two of them: as with reduce_prod, the first
  // order only.
  ops::Array factors = example_signed({2, 3}, 0.5, 1.5, 87);
  factors.reals[1] = factors.reals[2] = factors.reals[5] = 0;
  out.push_back({"scatter_elements",
                 "mul at one place, by zeros too",
                 {data, example_integers({2, 3}, {2, 2, 2, 2, 2, 2}), factors},
                 {{"axis", std::int64_t{0}}, {"reduction", std::string("mul")}},
                 false,
                 {}});
  out.push_back({"scatter_nd",
                 "batch",
                 {cube, example_integers({2, 1}, {2, 0}), row_updates},
                 {{"batch_dims", std::int64_t{1}}},
                 true,
                 {}});
  return out;
}

}  // namespace plimsoll::autodiff
