// Functions of several tensors with broadcasting, comparisons, logic and `where`, each an
// expression with the meaning of ops/elementwise (the functions stand in pointwise_prelude.h).
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/table.h"

namespace plimsoll::kernels::cuda {
namespace {

Made make_mod(const Site& site) {
  const bool c_style = site.attributes().integer("fmod") != 0;
  return make_expression_kernel(site, c_style ? "rest_of(a, b)" : "floored(rest_of(a, b), b)");
}

Made make_shift(const Site& site) {
  if (!all_unblocked(site)) return no_kernel();
  const ir::DType dtype = site.in(0).dtype;
  const bool left = site.attributes().text("direction") == "left";
  const bool keeps_sign = !left && ir::is_signed_integer(dtype);
  Pointwise pointwise = pointwise_of(site);
  pointwise.results = {fmt::format("(b < 0 || b >= {0}) ? decltype(a)({1}) : decltype(a)({2})",
                                   ir::bits(dtype), keeps_sign ? "a < 0 ? -1 : 0" : "0",
                                   left ? "(unsigned long long)a << b" : "a >> b")};
  return make_pointwise(site, pointwise);
}

Made make_add_n(const Site& site) {
  return make_expression_kernel(site, site.has(3) ? "a + b + c + d" : "a + b + c");
}

}  // namespace

std::span<const TableEntry> binary_kernels() {
  static constexpr TableEntry kRows[] = {
      {"accumulate", make_expression<"a + b">},
      {"add", make_expression<"a + b">},
      {"add_n", make_add_n},
      {"add_relu", make_expression<"no_less_than_0(a + b)">},
      {"add_relu_grad", make_expression<"c > 0 ? a + b : 0">},
      {"bit_and", make_expression<"a & b">},
      {"bit_not", make_expression<"~a">},
      {"bit_or", make_expression<"a | b">},
      {"bit_shift", make_shift},
      {"bit_xor", make_expression<"a ^ b">},
      {"div", make_expression<"quotient(a, b)">},
      {"equal", make_expression<"a == b">},
      {"greater", make_expression<"a > b">},
      {"greater_equal", make_expression<"a >= b">},
      {"is_inf", make_expression<"magnitude(a) == kInfinity">},
      {"is_nan", make_expression<"a != a">},
      {"less", make_expression<"a < b">},
      {"less_equal", make_expression<"a <= b">},
      {"logical_and", make_expression<"a != 0 && b != 0">},
      {"logical_not", make_expression<"a == 0">},
      {"logical_or", make_expression<"a != 0 || b != 0">},
      {"logical_xor", make_expression<"(a != 0) != (b != 0)">},
      {"maximum", make_expression<"maximum(a, b)">},
      {"minimum", make_expression<"minimum(a, b)">},
      {"mod", make_mod},
      {"mul", make_expression<"a * b">},
      {"pow", make_expression<"power(a, b)">},
      {"sub", make_expression<"a - b">},
      {"where", make_expression<"a != 0 ? b : c">},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda
