// The functions that formulas are written in, as CUDA text: the formulas of
// ops/elementwise/activation_formulas.h, evaluated once on Terms, write the body of a kernel.
//
//   SourceWriter writer;
//   const Term y = ops::Relu<SourceMath>().value(writer.input("a"));
//   writer.statements()   const auto v0 = a < Real(0);
//                         const auto v1 = v0 ? Real(0) : a;
//   y.text                v1
//
// Every operation becomes a variable of its own, so a term that is used twice is computed once.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace plimsoll::kernels::cuda {

class SourceWriter;

// A variable of the kernel.
struct Term {
  SourceWriter* writer;
  std::string text;
};

// A number as the text of a Real.
inline std::string literal(double value) {
  if (std::isnan(value)) return "kNan";
  if (std::isinf(value)) return value < 0 ? "(-kInfinity)" : "kInfinity";
  return fmt::format("Real({:.17g})", value);
}
// A 64-bit integer; the least one has no literal of its own.
inline std::string integer_literal(std::int64_t value) {
  return value == std::numeric_limits<std::int64_t>::min() ? "(-9223372036854775807LL - 1)"
                                                           : fmt::format("{}LL", value);
}
inline std::string literal(const Term& term) {
  return term.text;
}

class SourceWriter {
 public:
  Term input(std::string name) { return {this, std::move(name)}; }
  // const auto vN = expression;
  Term define(const std::string& expression) {
    const std::string name = fmt::format("v{}", count_++);
    statements_ += fmt::format("      const auto {} = {};\n", name, expression);
    return {this, name};
  }
  const std::string& statements() const { return statements_; }

 private:
  std::string statements_;
  int count_ = 0;
};

// One operand is a Term, the other a Term or a number.
template <typename A, typename B>
Term term_of(const A& a, std::string_view symbol, const B& b) {
  const std::string text = fmt::format("{} {} {}", literal(a), symbol, literal(b));
  if constexpr (std::is_same_v<A, Term>) {
    return a.writer->define(text);
  } else {
    return b.writer->define(text);
  }
}

#define PLIMSOLL_TERM_OPERATOR(symbol)                        \
  inline Term operator symbol(const Term& a, const Term& b) { \
    return term_of(a, #symbol, b);                            \
  }                                                           \
  inline Term operator symbol(const Term& a, double b) {      \
    return term_of(a, #symbol, b);                            \
  }                                                           \
  inline Term operator symbol(double a, const Term& b) {      \
    return term_of(a, #symbol, b);                            \
  }
PLIMSOLL_TERM_OPERATOR(+)
PLIMSOLL_TERM_OPERATOR(-)
PLIMSOLL_TERM_OPERATOR(*)
PLIMSOLL_TERM_OPERATOR(/)
#undef PLIMSOLL_TERM_OPERATOR
inline Term operator-(const Term& x) {
  return x.writer->define("-" + x.text);
}

struct SourceMath {
  using Number = double;

  static Term call(std::string_view function, const Term& x) {
    return x.writer->define(fmt::format("real_{}({})", function, x.text));
  }
  static Term exp(const Term& x) { return call("exp", x); }
  static Term expm1(const Term& x) { return call("expm1", x); }
  static Term tanh(const Term& x) { return call("tanh", x); }
  // Below zero 1 + erf(x) would keep few digits.
  static Term erf_plus_one(const Term& x) { return call("erfc", -x); }
  static Term sigmoid(const Term& x) { return call("sigmoid", x); }
  static Term softplus(const Term& x) { return call("softplus", x); }
  static Term abs(const Term& x) { return call("fabs", x); }
  static Term sqrt(const Term& x) { return call("sqrt", x); }

  static Term less(const Term& a, double b) { return term_of(a, "<", b); }
  static Term less_equal(const Term& a, double b) { return term_of(a, "<=", b); }
  static Term greater(const Term& a, double b) { return term_of(a, ">", b); }
  static Term greater_equal(const Term& a, double b) { return term_of(a, ">=", b); }
  static Term both(const Term& a, const Term& b) { return term_of(a, "&&", b); }
  static Term either(const Term& a, const Term& b) { return term_of(a, "||", b); }
  template <typename A, typename B>
  static Term select(const Term& condition, const A& a, const B& b) {
    return condition.writer->define(
        fmt::format("{} ? {} : {}", condition.text, literal(a), literal(b)));
  }
  template <typename A, typename B>
  static Term choose(const Term& condition, const A& a, const B& b) {
    return select(condition, a(), b());
  }
  static Term at_most(const Term& x, double most) { return select(greater(x, most), most, x); }
  static Term clamp(const Term& x, double low, double high) {
    return at_most(select(less(x, low), low, x), high);
  }
  static Term where_negative(const Term& x) { return x; }
};

}  // namespace plimsoll::kernels::cuda
