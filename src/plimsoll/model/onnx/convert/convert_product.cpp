// Matrix products: MatMul, Gemm, Einsum.
#include <algorithm>
#include <map>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

bool is_source(OperatorCall& call, Var x) {
  return !call.builder().error() && ir::is_source(call.builder().graph().value(x.id()).kind);
}

Status matmul(OperatorCall& call) {
  Var a = call.in(0);
  Var b = call.in(1);
  if (!a || !b || a.rank() == 0 || b.rank() == 0)
    return bad_input("its operands are scalars or missing");
  // A vector is a row on the left and a column on the right, and its axis goes again afterwards.
  const bool row = a.rank() == 1;
  const bool column = b.rank() == 1;
  if (row) a = reshape_to(a, {1, a.dim(0)});
  if (column) b = reshape_to(b, {b.dim(0), 1});
  Builder& builder = call.builder();
  Var y = b.rank() == 2 && is_source(call, b) ? builder.call1("linear", {a, b})
                                              : builder.call1("matmul", {a, b});
  if (row || column) {
    ir::Ints shape = dims_of(y.shape());
    if (shape.size() < 2) return {};  // the builder has an error
    if (column) shape.pop_back();
    if (row) shape.erase(shape.end() - (column ? 1 : 2));
    y = reshape_to(y, shape);
  }
  return call.done(y);
}

Status gemm(OperatorCall& call) {
  const double alpha = call.real("alpha", 1);
  const double beta = call.real("beta", 1);
  const bool trans_a = call.integer("transA", 0) != 0;
  const std::int64_t trans_b = call.integer("transB", 0) != 0;
  Var a = call.in(0);
  const Var b = call.in(1);
  if (!a || !b || a.rank() != 2 || b.rank() != 2)
    return bad_input("its operands are not of rank 2");
  Builder& builder = call.builder();
  if (!ir::is_float(a.dtype()))
    return bad_input("products of {} are not supported", ir::name(a.dtype()));
  if (trans_a) a = transpose_by(a, {1, 0});
  if (alpha != 1) a = a * alpha;
  Var c = call.maybe(2);
  if (c && beta != 1) c = c * beta;
  const std::int64_t columns = b.dim(trans_b ? 0 : 1);
  const bool is_bias = c && beta != 0 && c.shape().elements() == columns &&
                       (c.rank() == 1 || (c.rank() == 2 && c.dim(0) == 1));
  Var y = builder.call1("linear", {a, b, is_bias ? reshape_to(c, {columns}) : Var()},
                        {{"trans_w", trans_b}});
  if (c && beta != 0 && !is_bias) y = y + c;
  return call.done(y);
}

// Einsum as transposes, reshapes, products and sums: each operand is brought to the form
// [batch..., own..., summed...], so that one step joins the first two operands in one matmul.
struct Labelled {
  Var x;
  std::string labels;
};

// Diagonals ("ii") and labels that occur nowhere else are dealt with before the product.
class Einsum {
 public:
  explicit Einsum(Builder& builder) : builder_(builder) {}

  Result<Labelled> join(Labelled a, Labelled b, const std::string& needed) {
    a = sum_unneeded(std::move(a), b.labels + needed);
    b = sum_unneeded(std::move(b), a.labels + needed);
    std::string batch;
    std::string summed;
    std::string own_a;
    std::string own_b;
    for (const char label : a.labels) {
      const bool in_b = b.labels.find(label) != std::string::npos;
      const bool in_out = needed.find(label) != std::string::npos;
      (in_b ? (in_out ? batch : summed) : own_a) += label;
    }
    for (const char label : b.labels) {
      if (a.labels.find(label) == std::string::npos) own_b += label;
    }
    if (summed.empty()) {  // an outer product
      const std::string all = batch + own_a + own_b;
      PLIMSOLL_TRY(const Var left, spread(a, all));
      PLIMSOLL_TRY(const Var right, spread(b, all));
      return Labelled{left * right, all};
    }
    PLIMSOLL_TRY(const Var left, grouped(a, batch, own_a, summed));
    PLIMSOLL_TRY(const Var right, grouped(b, batch, summed, own_b));
    const Var y = builder_.call1("matmul", {left, right});
    ir::Ints shape;
    for (const char label : batch + own_a + own_b) shape.push_back(size(label));
    if (shape.size() > ir::kMaxRank)
      return bad_input("an intermediate result has more than {} axes", ir::kMaxRank);
    return Labelled{reshape_to(y, shape), batch + own_a + own_b};
  }

  Result<Var> finish(Labelled a, const std::string& out) {
    a = sum_unneeded(std::move(a), out);
    if (a.labels.size() != out.size()) return bad_input("its output names a label no input has");
    ir::Ints perm;
    for (const char label : out) {
      const std::size_t place = a.labels.find(label);
      if (place == std::string::npos) return bad_input("its output names a label no input has");
      perm.push_back(static_cast<std::int64_t>(place));
    }
    return transpose_by(a.x, perm);
  }

  Status learn(const Labelled& a) {
    for (std::size_t i = 0; i < a.labels.size(); ++i) {
      const std::int64_t extent = a.x.dim(static_cast<int>(i));
      const auto [place, fresh] = sizes_.emplace(a.labels[i], extent);
      if (!fresh && place->second != extent && place->second != 1 && extent != 1) {
        return bad_input("label '{}' is {} and {}", a.labels[i], place->second, extent);
      }
      place->second = std::max(place->second, extent);
    }
    return {};
  }

  // A label twice in one operand keeps the diagonal only.
  Result<Labelled> without_repeats(Labelled a) {
    for (std::size_t i = 0; i < a.labels.size(); ++i) {
      const std::size_t other = a.labels.find(a.labels[i], i + 1);
      if (other == std::string::npos) continue;
      const int first = static_cast<int>(i);
      const int second = static_cast<int>(other);
      if (a.x.dim(first) != a.x.dim(second)) return bad_input("a repeated label has two sizes");
      const auto index = [&](int axis) { return counted(builder_, dims_of(a.x.shape()), axis); };
      const Var on_diagonal =
          cast_to(builder_.call1("equal", {index(first), index(second)}), a.x.dtype());
      a.x = reduce("reduce_sum", a.x * on_diagonal, {second}, false);
      a.labels.erase(other, 1);
      --i;
    }
    return a;
  }

 private:
  std::int64_t size(char label) const { return sizes_.at(label); }

  static Labelled sum_unneeded(Labelled a, const std::string& needed) {
    ir::Ints axes;
    std::string rest;
    for (std::size_t i = 0; i < a.labels.size(); ++i) {
      if (needed.find(a.labels[i]) == std::string::npos)
        axes.push_back(static_cast<std::int64_t>(i));
      else
        rest += a.labels[i];
    }
    if (axes.empty()) return a;
    return {reduce("reduce_sum", a.x, axes, false), rest};
  }

  // The axes in the order of `labels`, each expanded to its full size when it was 1.
  Var ordered(const Labelled& a, const std::string& labels) {
    ir::Ints perm;
    ir::Ints shape;
    for (const char label : labels) {
      perm.push_back(static_cast<std::int64_t>(a.labels.find(label)));
      shape.push_back(size(label));
    }
    return expand_to(transpose_by(a.x, perm), shape);
  }

  Result<Var> grouped(const Labelled& a, const std::string& batch, const std::string& rows,
                      const std::string& columns) {
    const Var x = ordered(a, batch + rows + columns);
    const ir::Shape own = x.shape();
    ir::Ints shape(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(batch.size()));
    const auto product = [&](const std::string& labels) {
      std::int64_t out = 1;
      for (const char label : labels) out *= size(label);
      return out;
    };
    shape.push_back(product(rows));
    shape.push_back(product(columns));
    if (shape.size() > ir::kMaxRank)
      return bad_input("an intermediate result has more than {} axes", ir::kMaxRank);
    return reshape_to(x, shape);
  }

  Result<Var> spread(const Labelled& a, const std::string& all) {
    if (all.size() > ir::kMaxRank)
      return bad_input("an intermediate result has more than {} axes", ir::kMaxRank);
    std::string own;
    ir::Ints shape;
    for (const char label : all) {
      const bool has = a.labels.find(label) != std::string::npos;
      if (has) own += label;
      shape.push_back(has ? size(label) : 1);
    }
    return reshape_to(ordered(a, own), shape);
  }

  Builder& builder_;
  std::map<char, std::int64_t> sizes_;
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

// Letters as they are; the axes under "..." become '0', '1', ... aligned at their end.
Result<std::string> labels_of(std::string_view term, int rank, int dots_rank) {
  std::string out;
  for (std::size_t i = 0; i < term.size(); ++i) {
    const char c = term[i];
    if (c == '.') {
      if (term.substr(i, 3) != "...") return bad_input("its equation has a stray '.'");
      for (int d = 0; d < rank; ++d) out += static_cast<char>('0' + dots_rank - rank + d);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      out += c;
    } else {
      return bad_input("its equation has a '{}'", c);
    }
  }
  return out;
}

Result<Equation> parse_equation(std::string text, const std::vector<Var>& operands) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, std::min(arrow, text.size()));
  std::vector<std::string_view> terms;
  while (true) {
    const std::size_t comma = left.find(',');
    terms.push_back(left.substr(0, comma));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  if (terms.size() != operands.size())
    return bad_input("its equation has {} terms for {} inputs", terms.size(), operands.size());
  std::vector<int> dots(terms.size(), 0);
  int most_dots = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const bool has_dots = terms[i].find("...") != std::string_view::npos;
    const int letters = static_cast<int>(terms[i].size()) - (has_dots ? 3 : 0);
    dots[i] = operands[i].rank() - letters;
    if (dots[i] < 0 || (!has_dots && dots[i] != 0))
      return bad_input("term {} does not fit its operand's rank", i);
    most_dots = std::max(most_dots, dots[i]);
  }
  Equation out;
  std::map<char, int> count;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    PLIMSOLL_TRY(std::string labels, labels_of(terms[i], dots[i], most_dots));
    for (const char label : labels) ++count[label];
    out.inputs.push_back(std::move(labels));
  }
  if (arrow != std::string::npos) {
    PLIMSOLL_TRY(out.output,
                 labels_of(std::string_view(text).substr(arrow + 2), most_dots, most_dots));
  } else {
    for (int d = 0; d < most_dots; ++d) out.output += static_cast<char>('0' + d);
    for (const auto& [label, times] : count) {
      if (times == 1 && std::isalpha(static_cast<unsigned char>(label)) != 0) out.output += label;
    }
  }
  return out;
}

Status einsum(OperatorCall& call) {
  const std::vector<Var> operands = call.all_inputs();
  if (operands.empty() || call.builder().error()) return bad_input("has no inputs");
  for (const Var& operand : operands) {
    if (!operand) return bad_input("an operand is missing");
  }
  PLIMSOLL_TRY(const Equation equation, parse_equation(call.text("equation", ""), operands));
  Einsum einsum(call.builder());
  std::vector<Labelled> parts;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    PLIMSOLL_TRY(Labelled part, einsum.without_repeats({operands[i], equation.inputs[i]}));
    PLIMSOLL_RETURN_IF_ERROR(einsum.learn(part));
    parts.push_back(std::move(part));
  }
  Labelled sum = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string needed = equation.output;
    for (std::size_t later = i + 1; later < parts.size(); ++later) needed += parts[later].labels;
    PLIMSOLL_TRY(sum, einsum.join(sum, parts[i], needed));
  }
  PLIMSOLL_TRY(const Var y, einsum.finish(sum, equation.output));
  return call.done(y);
}

}  // namespace

std::vector<Operator> product_operators() {
  return {{"MatMul", matmul},
          {"Gemm", gemm, "alpha beta broadcast transA transB"},
          {"Einsum", einsum, "equation"}};
}

}  // namespace plimsoll::model::onnx
