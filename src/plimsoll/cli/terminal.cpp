#include "plimsoll/cli/terminal.h"

#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

namespace plimsoll::cli {
namespace {

bool shows_colour(int file) {
  const char* refused = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  const bool dumb = kind == nullptr || std::string_view(kind) == "dumb";
  return isatty(file) == 1 && !dumb && (refused == nullptr || *refused == '\0');
}

const char* code_of(Ink ink) {
  switch (ink) {
    case Ink::kBold:
      return "1";
    case Ink::kRed:
      return "31";
    case Ink::kGreen:
      return "32";
  }
  return "0";
}

}  // namespace

std::string inked(std::string_view text, Ink ink, int file) {
  return shows_colour(file) ? fmt::format("\033[{}m{}\033[0m", code_of(ink), text)
                            : std::string(text);
}

}  // namespace plimsoll::cli
