#include "plimsoll/autodiff/testing/operator_examples.h"

namespace plimsoll::autodiff {
namespace {

using Examples = std::vector<OperatorExample>;
using ir::Ints;

// All axes, one axis, several kept, and an empty group where that has a value.
void add_reduction(Examples& out, const std::string& op, bool empty_group) {
  const auto values = [](const ir::Shape& shape) { return example_signed(shape, 0.3, 1.5, 91); };
  out.push_back({op, "all", {values({2, 3})}, {}, true, {}});
  out.push_back({op, "one axis", {values({2, 3, 2})}, {{"axes", Ints{1}}}, true, {}});
  out.push_back({op,
                 "kept",
                 {values({2, 3, 2})},
                 {{"axes", Ints{-1, 0}}, {"keepdims", std::int64_t{1}}},
                 true,
                 {}});
  out.push_back({op, "no axis", {values({2, 2})}, {{"axes", Ints{}}}, true, {}});
  out.push_back({op, "empty", {values({0, 3})}, {{"axes", Ints{1}}}, true, {}});
  if (empty_group)
    out.push_back({op, "empty group", {values({0, 3})}, {{"axes", Ints{0}}}, true, {}});
}

}  // namespace

std::vector<OperatorExample> reduction_examples() {
  Examples out;
  add_reduction(out, "reduce_sum", true);
  add_reduction(out, "reduce_mean", false);
  add_reduction(out, "reduce_max", false);
  add_reduction(out, "reduce_min", false);
  add_reduction(out, "reduce_prod", true);
  // One zero in the first row, two in the second. The product is smooth there, but its gradient is
  // written by cases, so only the first order holds at the zeros themselves.
  out.push_back({"reduce_prod",
                 "zeros",
                 {ops::Array::of_reals({3, 3}, {2, 0, 3, 0, 0, 4, 1, 2, 3})},
                 {{"axes", Ints{1}}},
                 false,
                 {}});
  const auto x = example_signed({2, 3, 2}, 0.5, 1.5, 92);
  for (const std::int64_t exclusive : {0, 1}) {
    for (const std::int64_t reverse : {0, 1}) {
      const ir::Attributes how{
          {"axis", std::int64_t{1}}, {"exclusive", exclusive}, {"reverse", reverse}};
      out.push_back({"cumsum", to_string(how), {x}, how, true, {}});
    }
  }
  out.push_back({"cumsum",
                 "empty",
                 {example_signed({2, 0}, 0.5, 1.5, 93)},
                 {{"axis", std::int64_t{1}}},
                 true,
                 {}});
  for (const std::int64_t largest : {0, 1}) {
    const ir::Attributes how{
        {"k", std::int64_t{2}}, {"axis", std::int64_t{1}}, {"largest", largest}};
    out.push_back({"top_k", to_string(how), {x}, how, true, {}});
  }
  out.push_back({"top_k", "none", {x}, {{"k", std::int64_t{0}}}, true, {}});
  out.push_back({"sum_squares", "", {x}, {}, true, {}});
  out.push_back({"sum_squares", "empty", {example_signed({0}, 0.5, 1.5, 94)}, {}, true, {}});
  return out;
}

}  // namespace plimsoll::autodiff
