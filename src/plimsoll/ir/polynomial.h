// How a number in a graph depends on sizes that are chosen later: "batch*seq", "49*batch",
// "seq^2+1".
//
// Degree at most two in each symbol, whole coefficients: enough for the extents and counts of
// models whose operators stay the same while batch and sequence length change (attention's scores
// are seq^2). A polynomial is found from samples, three neighbouring sizes per symbol, by divided
// differences:
//
//   batch        8     9    10
//   count      392   441   490      differences 49, 49; second difference 0:  49*batch
//
// What three samples determine can still be wrong elsewhere (a size rounded up to a multiple looks
// straight for a while), so whoever binds a size verifies the graph that comes out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"

namespace plimsoll::ir {

struct SymbolSize {
  std::string name;
  std::int64_t size = 0;
  bool operator==(const SymbolSize&) const = default;
};

// Null when there is none of that name.
const SymbolSize* find_symbol(std::span<const SymbolSize> symbols, std::string_view name);
// The symbols with the sizes that were asked for; one that is no symbol, or negative, is a usage
// error.
Result<std::vector<SymbolSize>> choose_sizes(std::vector<SymbolSize> symbols,
                                             std::span<const SymbolSize> asked);

inline constexpr int kSamplesPerSymbol = 3;
inline constexpr std::size_t kMaxSymbols = 3;

class Polynomial {
 public:
  // Through the numbers at first, first+1 and first+2 of every symbol, the last symbol running
  // fastest. Nothing when a coefficient would be no whole number, or too large.
  static std::optional<Polynomial> through(std::span<const SymbolSize> first,
                                           std::span<const std::int64_t> samples);

  // Nothing on overflow.
  std::optional<std::int64_t> at(std::span<const SymbolSize> sizes) const;
  // With the names of `symbols`, highest powers first.
  std::string text(std::span<const SymbolSize> symbols) const;

  bool operator==(const Polynomial&) const = default;

 private:
  // By powers as digits to the base three, the last symbol's the lowest: [1, y, y^2, x, xy, ...].
  std::vector<std::int64_t> coefficients_;
};

// The value of what text() writes, or of any sum of products of whole numbers and symbols.
Result<std::int64_t> evaluate(std::string_view expression, std::span<const SymbolSize> sizes);

// A name that cannot be mistaken for a number.
bool is_symbol(std::string_view name);

}  // namespace plimsoll::ir
