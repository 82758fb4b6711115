#include "plimsoll/ir/polynomial.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "plimsoll/base/checked.h"
#include "plimsoll/ir/attributes.h"

namespace plimsoll::ir {
namespace {

constexpr std::size_t kPowers = kSamplesPerSymbol;
__extension__ using Wide = __int128;

bool fits(Wide value) {
  return value >= std::numeric_limits<std::int64_t>::min() &&
         value <= std::numeric_limits<std::int64_t>::max();
}

// From samples at s, s+1, s+2 to coefficients of 1, x, x^2; false when there are no whole ones.
bool to_powers(std::int64_t s, std::array<Wide, kPowers>& f) {
  const Wide slope = f[1] - f[0];
  const Wide bend = f[2] - 2 * f[1] + f[0];
  if (bend % 2 != 0) return false;
  const Wide c2 = bend / 2;
  const Wide first = s;
  f = {f[0] - slope * first + c2 * first * (first + 1), slope - c2 * (2 * first + 1), c2};
  return std::all_of(f.begin(), f.end(), fits);
}

// The term's powers, one per symbol.
std::vector<std::size_t> powers_of(std::size_t term, std::size_t symbols) {
  std::vector<std::size_t> out(symbols);
  for (std::size_t s = symbols; s-- > 0; term /= kPowers) out[s] = term % kPowers;
  return out;
}

std::string product_text(std::int64_t coefficient, const std::vector<std::size_t>& powers,
                         std::span<const SymbolSize> symbols) {
  std::string out;
  for (std::size_t s = 0; s < powers.size(); ++s) {
    if (powers[s] == 0) continue;
    out += (out.empty() ? "" : "*") + symbols[s].name +
           (powers[s] > 1 ? "^" + std::to_string(powers[s]) : "");
  }
  if (out.empty()) return std::to_string(coefficient);
  if (coefficient == 1) return out;
  return coefficient == -1 ? "-" + out : std::to_string(coefficient) + "*" + out;
}

// Reads one expression from left to right.
class Evaluator {
 public:
  Evaluator(std::string_view text, std::span<const SymbolSize> sizes)
      : text_(text), sizes_(sizes) {}

  Result<std::int64_t> run() {
    std::int64_t sum = 0;
    do {
      const bool negative = take('-');
      PLIMSOLL_TRY(std::int64_t product, factor());
      while (take('*')) {
        PLIMSOLL_TRY(const std::int64_t next, factor());
        PLIMSOLL_TRY(product, whole(checked_multiply(product, next)));
      }
      if (negative) {
        PLIMSOLL_TRY(product, whole(checked_multiply(product, -1)));
      }
      PLIMSOLL_TRY(sum, whole(checked_add(sum, product)));
    } while (take('+') || (at_ < text_.size() && text_[at_] == '-'));
    if (at_ != text_.size())
      return bad_input("'{}' is no sum of products of numbers and symbols", text_);
    return sum;
  }

 private:
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Result<std::int64_t> whole(std::optional<std::int64_t> value) const {
    if (!value) return bad_input("'{}' does not fit 64 bits", text_);
    return *value;
  }

  Result<std::int64_t> number() {
    std::int64_t out = 0;
    const auto [end, problem] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), out);
    if (problem != std::errc() || out < 0)
      return bad_input("'{}': expects a number or a symbol at '{}'", text_, text_.substr(at_));
    at_ = static_cast<std::size_t>(end - text_.data());
    return out;
  }

  Result<std::int64_t> factor() {
    const std::size_t end = std::min(text_.find_first_of("*+-^", at_), text_.size());
    const std::string_view name = text_.substr(at_, end - at_);
    if (!is_symbol(name)) return number();
    at_ = end;
    const SymbolSize* known = find_symbol(sizes_, name);
    if (known == nullptr) return bad_input("'{}' is no symbol of this graph", name);
    if (!take('^')) return known->size;
    PLIMSOLL_TRY(const std::int64_t power, number());
    std::int64_t out = 1;
    for (std::int64_t i = 0; i < power; ++i) {
      PLIMSOLL_TRY(out, whole(checked_multiply(out, known->size)));
      if (out <= 1) break;  // and so for every higher power
    }
    return out;
  }

  std::string_view text_;
  std::span<const SymbolSize> sizes_;
  std::size_t at_ = 0;
};

}  // namespace

const SymbolSize* find_symbol(std::span<const SymbolSize> symbols, std::string_view name) {
  const auto found = std::find_if(symbols.begin(), symbols.end(),
                                  [&](const SymbolSize& symbol) { return symbol.name == name; });
  return found != symbols.end() ? &*found : nullptr;
}

Result<std::vector<SymbolSize>> choose_sizes(std::vector<SymbolSize> symbols,
                                             std::span<const SymbolSize> asked) {
  for (const SymbolSize& size : asked) {
    const SymbolSize* known = find_symbol(symbols, size.name);
    if (known == nullptr)
      return fail(ErrorCode::kUsage, "the graph has no size '{}' to choose: its extents are fixed",
                  size.name);
    if (size.size < 0)
      return fail(ErrorCode::kUsage, "size {} of '{}' is negative", size.size, size.name);
    symbols[static_cast<std::size_t>(known - symbols.data())].size = size.size;
  }
  return symbols;
}

std::optional<Polynomial> Polynomial::through(std::span<const SymbolSize> first,
                                              std::span<const std::int64_t> samples) {
  Polynomial out;
  out.coefficients_.assign(samples.begin(), samples.end());
  std::size_t stride = samples.size();
  for (const SymbolSize& symbol : first) {
    stride /= kPowers;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (i / stride % kPowers != 0) continue;
      std::array<Wide, kPowers> line{};
      for (std::size_t p = 0; p < kPowers; ++p) line[p] = out.coefficients_[i + p * stride];
      if (!to_powers(symbol.size, line)) return std::nullopt;
      for (std::size_t p = 0; p < kPowers; ++p)
        out.coefficients_[i + p * stride] = static_cast<std::int64_t>(line[p]);
    }
  }
  return out;
}

std::optional<std::int64_t> Polynomial::at(std::span<const SymbolSize> sizes) const {
  std::int64_t sum = 0;
  for (std::size_t term = 0; term < coefficients_.size(); ++term) {
    if (coefficients_[term] == 0) continue;
    std::optional<std::int64_t> product = coefficients_[term];
    const std::vector<std::size_t> powers = powers_of(term, sizes.size());
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      for (std::size_t p = 0; p < powers[s] && product; ++p)
        product = checked_multiply(*product, sizes[s].size);
    }
    if (product) product = checked_add(sum, *product);
    if (!product) return std::nullopt;
    sum = *product;
  }
  return sum;
}

std::string Polynomial::text(std::span<const SymbolSize> symbols) const {
  std::string out;
  for (std::size_t term = coefficients_.size(); term-- > 0;) {
    if (coefficients_[term] == 0) continue;
    if (!out.empty() && coefficients_[term] > 0) out += '+';
    out += product_text(coefficients_[term], powers_of(term, symbols.size()), symbols);
  }
  return out.empty() ? "0" : out;
}

Result<std::int64_t> evaluate(std::string_view expression, std::span<const SymbolSize> sizes) {
  return Evaluator(expression, sizes).run();
}

bool is_symbol(std::string_view name) {
  return is_word(name) && name.find('.') == std::string_view::npos && name != "inf" &&
         name != "nan";
}

}  // namespace plimsoll::ir
