#include "plimsoll/base/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace plimsoll {
namespace {

// Longer words are nobody's typing error; the table stays small whatever a caller passes.
constexpr std::size_t kLongest = 256;

std::string in_small_letters(std::string_view word) {
  std::string out(word);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<int> table((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return table[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = static_cast<int>(i + j);
        continue;
      }
      const int replaced = at(i - 1, j - 1) + (a[i - 1] != b[j - 1]);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return table.back();
}

std::string nearest_name(std::string_view asked, std::span<const std::string> names) {
  if (asked.size() > kLongest) return {};
  const std::string word = in_small_letters(asked);
  int best = std::max(2, static_cast<int>(word.size() / 3)) + 1;
  std::string out;
  for (const std::string& name : names) {
    if (name.size() > kLongest) continue;
    const int distance = edit_distance(word, in_small_letters(name));
    if (distance >= best) continue;
    best = distance;
    out = name;
  }
  return out;
}

}  // namespace plimsoll
