// "did you mean": the name of a list that a misspelt one is closest to.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace plimsoll {

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
int edit_distance(std::string_view a, std::string_view b);

// The nearest of `names`, or "" when none is within a third of the word's length (at least two
// edits).
std::string nearest_name(std::string_view word, std::span<const std::string> names);

}  // namespace plimsoll
