#include <cmath>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/binary_evaluation.h"
#include "plimsoll/ops/elementwise/binary_formulas.h"
#include "plimsoll/ops/elementwise/comparison.h"
#include "plimsoll/ops/elementwise/unary.h"
#include "plimsoll/ops/reduction/reduction.h"

namespace plimsoll::ops {
namespace {

// By squaring; wraps.
std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  auto square = static_cast<std::uint64_t>(base);
  std::uint64_t out = 1;
  for (auto rest = static_cast<std::uint64_t>(exponent); rest > 0; rest >>= 1) {
    if (rest & 1) out *= square;
    square *= square;
  }
  return wrapping(out);
}

void evaluate_pow(const Evaluation& e) {
  evaluate_binary(e, RealPower(), integer_power);
}

struct Remainder {
  bool c_style;
  double operator()(double a, double b) const {
    const double rest = std::fmod(a, b);
    return !c_style && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return b == 0 ? 0 : a % b; }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    if (b == 0 || b == -1) return 0;
    const std::int64_t rest = a % b;
    return !c_style && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};

void evaluate_mod(const Evaluation& e) {
  evaluate_ordered(e, Remainder{e.attributes.integer("fmod") != 0});
}

// 0^0 has the derivative 0, not 0 * 0^-1.
std::vector<Var> pow_gradient(const Backward& g) {
  const Var a = g.in(0);
  const Var b = g.in(1);
  std::vector<Var> out(2);
  if (g.wants(0)) {
    const Var da = where(equal(b, number(b, 0)), number(b, 0), g.dy() * (b * pow(a, b - 1)));
    out[0] = sum_to(da, a.shape());
  }
  if (g.wants(1)) {
    const Var positive = greater(a, number(a, 0));
    out[1] = sum_to(g.dy() * (g.out(0) * log(where(positive, a, number(a, 1)))), b.shape());
  }
  return out;
}

std::vector<Var> split_by(const Backward& g, Var to_first) {
  const Var zero = number(g.dy(), 0);
  return {g.wants(0) ? sum_to(where(to_first, g.dy(), zero), g.in(0).shape()) : Var(),
          g.wants(1) ? sum_to(where(to_first, zero, g.dy()), g.in(1).shape()) : Var()};
}

std::vector<Var> maximum_gradient(const Backward& g) {
  return split_by(g, greater_equal(g.in(0), g.in(1)));
}

std::vector<Var> minimum_gradient(const Backward& g) {
  return split_by(g, less_equal(g.in(0), g.in(1)));
}

std::vector<Var> mod_gradient(const Backward& g) {
  std::vector<Var> out(2);
  if (g.wants(0)) out[0] = sum_to(g.dy(), g.in(0).shape());
  if (g.wants(1)) {
    const Var ratio = g.in(0) / g.in(1);
    const bool c_style = g.attributes.integer("fmod") != 0;
    const Var whole = c_style ? sign(ratio) * floor(abs(ratio)) : floor(ratio);
    out[1] = sum_to(neg(g.dy() * whole), g.in(1).shape());
  }
  return out;
}

}  // namespace

Var mod(Var a, Var b, bool fmod) {
  ir::Attributes attributes;
  if (fmod) attributes.set("fmod", std::int64_t{1});
  return a.builder().call1("mod", {a, b}, std::move(attributes));
}

std::vector<OpDefinition> power_definitions() {
  return {
      binary_definition("pow", pow_gradient, evaluate_pow),
      binary_definition("maximum", maximum_gradient, evaluate_by_order<Maximum>),
      binary_definition("minimum", minimum_gradient, evaluate_by_order<Minimum>),
      binary_definition("mod", mod_gradient, evaluate_mod).having({attribute::integer("fmod", 0)}),
  };
}

}  // namespace plimsoll::ops
