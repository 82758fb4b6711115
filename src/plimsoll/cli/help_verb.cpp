#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/nearest_name.h"
#include "plimsoll/cli/help.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

Result<std::string> help_of(const std::vector<VerbRow>& table, const std::string& name) {
  if (name.empty()) return program_help(table);
  std::vector<std::string> names;
  for (const VerbRow& verb : table) {
    if (verb.name == name) return verb_help(verb);
    names.push_back(verb.name);
  }
  const std::string near = nearest_name(name, names);
  return fail(ErrorCode::kUsage, "help '{}': no verb has this name{} `plimsoll --help` lists them",
              name, near.empty() ? ";" : fmt::format("; did you mean {}?", near));
}

Action bind_help(Command& command) {
  auto verb = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("VERB", *verb, "of this verb; without one, of the program");
  command.add_flag("--json", *json, "one JSON object");
  return [verb, json, &command]() -> Status {
    PLIMSOLL_TRY(std::string text, help_of(option_table(command), *verb));
    if (*json) text = json_text(nlohmann::ordered_json{{"schema", 1}, {"text", text}}) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  };
}

}  // namespace

Verb help_verb() {
  return {"help", "the same as --help", "Examples:\n  plimsoll help\n  plimsoll help plan",
          bind_help};
}

}  // namespace plimsoll::cli
