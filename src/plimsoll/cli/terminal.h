// What a terminal gets and a pipe does not: colour, and one line that follows long work.
//
// Colour is used on a terminal only, never with NO_COLOR set or TERM=dumb, and never carries
// meaning alone: a sign or a word says the same.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::cli {

enum class Ink { kBold, kRed, kGreen };

// The text in that ink where `file` (STDOUT_FILENO, STDERR_FILENO) is a terminal that shows it;
// else as it is.
std::string inked(std::string_view text, Ink ink, int file);

}  // namespace plimsoll::cli
