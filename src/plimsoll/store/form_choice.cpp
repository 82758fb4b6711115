#include "plimsoll/store/form_choice.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace plimsoll::store {
namespace {

// The next place on the lower hull: the fewest seconds for a saved byte, then the most bytes.
std::optional<FormStep> next_step(std::size_t weight, std::span<const FormPlace> places,
                                  const FormPlace& from) {
  std::optional<FormStep> best;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].bytes >= from.bytes) continue;
    const FormStep step{weight, i, from.bytes - places[i].bytes, places[i].seconds - from.seconds};
    const bool better = !best || step.for_a_byte() < best->for_a_byte() ||
                        (step.for_a_byte() == best->for_a_byte() && step.saved > best->saved);
    if (better) best = step;
  }
  return best;
}

}  // namespace

std::vector<FormStep> steps_to_smaller_forms(std::span<const std::vector<FormPlace>> places) {
  std::vector<std::pair<double, FormStep>> by_price;
  for (std::size_t w = 0; w < places.size(); ++w) {
    if (places[w].empty()) continue;
    FormPlace from = places[w][0];
    double price = -std::numeric_limits<double>::infinity();
    while (const auto step = next_step(w, places[w], from)) {
      price = std::max(price, step->for_a_byte());  // never before the step that leads to it
      by_price.emplace_back(price, *step);
      from = places[w][step->place];
    }
  }
  std::stable_sort(by_price.begin(), by_price.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<FormStep> out;
  for (const auto& [price, step] : by_price) out.push_back(step);
  return out;
}

}  // namespace plimsoll::store
