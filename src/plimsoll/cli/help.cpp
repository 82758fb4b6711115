#include "plimsoll/cli/help.h"

#include <unistd.h>

#include <fmt/format.h>

#include "plimsoll/api/version.h"
#include "plimsoll/cli/terminal.h"

namespace plimsoll::cli {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 30;

constexpr const char* kTour =
    "It does not fit\n"
    "  plimsoll memory gpt2 --batch 8              what uses memory, and how it grows\n"
    "  plimsoll plan gpt2 --batch 8 --budget 60%   the fastest step within 60 % of its memory\n"
    "  plimsoll run resnet18 --budget 400MB        the same, and run it\n"
    "You build a compiler or a runtime\n"
    "  plimsoll pack problem.csv --minimize        offsets for buffers with lifetimes\n"
    "  plimsoll plan --dag graph.json --budget 80% recompute for any weighted DAG\n"
    "Where did memory go?\n"
    "  plimsoll view snapshot.pickle.gz            a PyTorch snapshot, a plan or a trace as one "
    "offline page\n"
    "  plimsoll explain plan.json --at peak        what is alive, why, and the price of removing "
    "it\n"
    "  plimsoll check resnet50 --max-peak 8GiB     a memory test for CI, no GPU needed\n";

constexpr const char* kCommon =
    "`plimsoll VERB --help` shows examples and options; every verb has --json. MODEL is a built-in "
    "name, an\n"
    ".onnx or a .graph file. Sizes: 1.5GiB, 800MB, 123456, 40%. Also --version, --log-level "
    "LEVEL.\n";

std::string bold(std::string_view text) {
  return inked(text, Ink::kBold, STDOUT_FILENO);
}

// Words of `text` in lines that begin at kIndent; the first line has begun already.
std::string wrapped(const std::string& text) {
  std::string out;
  std::size_t column = kIndent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (column > kIndent && column + 1 + word.size() > kColumns) {
      out += "\n" + std::string(kIndent, ' ');
      column = kIndent;
    } else if (column > kIndent) {
      out += " ";
      ++column;
    }
    out += word;
    column += word.size();
    at = end + 1;
  }
  return out;
}

std::string option_line(const OptionRow& option) {
  const std::string heading = "  " + heading_of(option);
  const std::string gap = heading.size() + 2 <= kIndent ? std::string(kIndent - heading.size(), ' ')
                                                        : "\n" + std::string(kIndent, ' ');
  return heading + gap + wrapped(option.help) + "\n";
}

std::string exit_codes() {
  std::string out = "Exit codes: ";
  for (std::size_t code = 0; code < std::size(kExitCodes); ++code) {
    out += fmt::format("{}{} {}",
                       code == 0   ? ""
                       : code == 5 ? ",\n"
                                   : ", ",
                       code, kExitCodes[code]);
  }
  return out + "\n";
}

}  // namespace

std::string heading_of(const OptionRow& option) {
  std::string out;
  for (const std::string& name : option.names) out += (out.empty() ? "" : ", ") + name;
  if (!option.positional && !option.value.empty()) out += " " + option.value;
  if (option.repeats) out += "...";
  return out;
}

std::string usage_of(const VerbRow& verb) {
  std::string out;
  for (const OptionRow& option : verb.options) {
    if (!option.positional) continue;
    const std::string name = heading_of(option);
    out += option.required ? name + " " : "[" + name + "] ";
  }
  return out + "[OPTIONS]";
}

std::string program_help(std::span<const VerbRow> verbs) {
  std::string out = fmt::format("{} {}: the memory system for deep-learning programs\n\n{}\n",
                                bold("plimsoll"), api::version(), kTour);
  out += bold("Verbs") + "\n";
  for (const VerbRow& verb : verbs) out += fmt::format("  {:<14}{}\n", verb.name, verb.summary);
  return out + "\n" + kCommon + exit_codes();
}

std::string verb_help(const VerbRow& verb) {
  std::string out = fmt::format("{} {}: {}\n\n{} plimsoll {} {}\n\n{}\n{}\n", bold("plimsoll"),
                                bold(verb.name), verb.summary, bold("Usage:"), verb.name,
                                usage_of(verb), bold("Examples:"), verb.examples);
  std::string group = "Options";
  out += "\n" + bold("Options:") + "\n";
  for (const OptionRow& option : verb.options) {
    if (!option.group.empty() && option.group != group)
      out += "\n" + bold(option.group + ":") + "\n";
    if (!option.group.empty()) group = option.group;
    out += option_line(option);
  }
  return out;
}

}  // namespace plimsoll::cli
