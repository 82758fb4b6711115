#include "plimsoll/cli/option_table.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

namespace plimsoll::cli {
namespace {

// CLI11 names types for programmers and appends the range it checks: "INT:INT in [1 - 6]". The
// colons of words such as "2:4" and "cuda[:N]" are none of those.
std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const auto is_of_word = [&](std::size_t colon) {
    const bool digit = colon + 1 < type.size() && type[colon + 1] >= '0' && type[colon + 1] <= '9';
    return digit || (colon > 0 && type[colon - 1] == '[');
  };
  std::size_t end = type.find(':');
  while (end != std::string::npos && is_of_word(end)) end = type.find(':', end + 1);
  const std::string name = type.substr(0, end);
  if (name == "INT" || name == "UINT" || name == "FLOAT") return "N";
  return name.empty() ? "TEXT" : name;
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  row.positional = option.get_positional();
  if (row.positional) {
    row.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
    // Of several long names the first is documented; the others are what it used to be called.
    if (!option.get_lnames().empty()) row.names.push_back("--" + option.get_lnames().front());
  }
  row.value = value_of(option);
  row.help = option.get_description();
  row.group = option.get_group() == "Options" ? "" : option.get_group();
  row.required = option.get_required();
  row.repeats = option.get_items_expected_max() > 1;
  return row;
}

std::string examples_of(std::string text) {
  constexpr std::string_view kHeading = "Examples:\n";
  if (text.starts_with(kHeading)) text.erase(0, kHeading.size());
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

std::vector<std::string> choices_of(const OptionRow& option) {
  std::vector<std::string> out;
  if (option.value.find('|') == std::string::npos) return out;
  for (std::size_t at = 0; at <= option.value.size();) {
    const std::size_t bar = std::min(option.value.find('|', at), option.value.size());
    out.push_back(option.value.substr(at, bar - at));
    at = bar + 1;
  }
  // "cpu|FILE": words in capitals stand for something else.
  std::erase_if(out, [](const std::string& word) {
    return word.empty() ||
           std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  });
  return out;
}

std::vector<VerbRow> option_table(const CLI::App& program) {
  std::vector<VerbRow> table;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    VerbRow verb{
        command->get_name(), command->get_description(), examples_of(command->get_footer()), {}};
    for (const CLI::Option* option : command->get_options()) {
      if (option != command->get_help_ptr()) verb.options.push_back(row_of(*option));
    }
    const auto rank = [](const OptionRow& row) {
      return row.positional ? 0 : row.group.empty() ? 1 : 2;
    };
    std::stable_sort(verb.options.begin(), verb.options.end(),
                     [&](const OptionRow& a, const OptionRow& b) { return rank(a) < rank(b); });
    table.push_back(std::move(verb));
  }
  return table;
}

std::vector<VerbRow> option_table(const Command& verb) {
  return option_table(*verb.app().get_parent());
}

}  // namespace plimsoll::cli
