// Verbs and options as plain rows: the one table behind `--help`, the man page and shell
// completion.
//
// Options are declared once, where a verb binds them to CLI11. This reads them back, so that
// nothing a user can type is described in a second place. What an option takes is its CLI11 type
// name: "SIZE", "FILE",
// or a list of words "natural|given|list|search", which completion offers.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

struct OptionRow {
  std::vector<std::string> names;  // "-o", "--output"; of a positional its one name
  std::string value;               // "FILE", "a|b|c"; empty: a flag
  std::string help;
  std::string group;  // heading; empty: the verb's own
  bool positional = false;
  bool required = false;
  bool repeats = false;
};

struct VerbRow {
  std::string name;
  std::string summary;
  std::string examples;            // lines, without a heading
  std::vector<OptionRow> options;  // positionals first, then the verb's own, then groups
};

// The words of "natural|given|list|search"; none for a plain value.
std::vector<std::string> choices_of(const OptionRow& option);

// A row for every subcommand.
std::vector<VerbRow> option_table(const CLI::App& program);
// The same, for the program this verb belongs to.
std::vector<VerbRow> option_table(const Command& verb);

}  // namespace plimsoll::cli
