#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/show_graph.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/option_table.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kCompletionExamples =
    "  plimsoll completion bash > ~/.local/share/bash-completion/completions/plimsoll\n"
    "  plimsoll completion zsh > ~/.zsh/completions/_plimsoll      a folder of your $fpath\n"
    "  . <(plimsoll completion bash)                               for this shell only";

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

// Where no word fits, bash goes on with files: that is what `-o default` is for.
std::string bash_script(const std::vector<VerbRow>& table, const std::string& models) {
  std::string verbs;
  std::string values;
  std::string options;
  for (const VerbRow& verb : table) {
    verbs += (verbs.empty() ? "" : " ") + verb.name;
    std::string names = "--help";
    for (const OptionRow& option : verb.options) {
      if (option.positional) continue;
      names += " " + joined(option.names);
      if (option.value.empty()) continue;
      for (const std::string& name : option.names)
        values += fmt::format("    '{} {}') words='{}' ;;\n", verb.name, name,
                              joined(choices_of(option)));
    }
    const bool takes_model = !verb.options.empty() && verb.options.front().names.front() == "MODEL";
    options += fmt::format("    {}) names='{}' words='{}' ;;\n", verb.name, names,
                           takes_model ? models : "");
  }
  return fmt::format(
      "# bash completion of plimsoll; `plimsoll completion bash` writes it.\n"
      "_plimsoll() {{\n"
      "  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verb='' "
      "word names='' words\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \" {0} \" in *\" $word \"*) verb=$word; break ;; esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  if [ -z \"$verb\" ]; then COMPREPLY=($(compgen -W '{0} --help --version --log-level' -- "
      "\"$current\")); return; fi\n"
      "  case \"$verb $before\" in\n{1}    *) words=none ;;\n  esac\n"
      "  if [ \"$words\" != none ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$current\")); "
      "return; fi\n"
      "  case $verb in\n{2}  esac\n"
      "  case $current in -*) words=$names ;; esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}}\n"
      "complete -o bashdefault -o default -F _plimsoll plimsoll\n",
      verbs, values, options);
}

// Text inside '...[...]' of an _arguments specification.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += {'\\', c};
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_value(const OptionRow& option) {
  if (option.value.empty()) return "";
  const std::vector<std::string> choices = choices_of(option);
  if (!choices.empty()) return fmt::format(":value:({})", joined(choices));
  return option.value == "FILE" ? ":file:_files" : fmt::format(":{}: ", zsh_text(option.value));
}

std::string zsh_script(const std::vector<VerbRow>& table, const std::string& models) {
  std::string verbs;
  std::string cases;
  for (const VerbRow& verb : table) {
    verbs += fmt::format("    '{}:{}'\n", verb.name, zsh_text(verb.summary));
    cases += fmt::format("    {}) _arguments '--help[show this verb]'", verb.name);
    for (const OptionRow& option : verb.options) {
      if (option.positional) continue;
      for (const std::string& name : option.names)
        cases += fmt::format(" \\\n      '{}{}[{}]{}'", option.repeats ? "*" : "", name,
                             zsh_text(option.help), zsh_value(option));
    }
    cases += " \\\n      '*:model or file:_plimsoll_subjects' ;;\n";
  }
  return fmt::format(
      "#compdef plimsoll\n"
      "# zsh completion of plimsoll; `plimsoll completion zsh` writes it.\n"
      "_plimsoll_subjects() {{ _alternative 'models:model:({2})' 'files:file:_files' }}\n"
      "_plimsoll() {{\n"
      "  local -a verbs\n"
      "  verbs=(\n{0}  )\n"
      "  if (( CURRENT == 2 )); then _describe verb verbs; return; fi\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $words[1] in\n{1}  esac\n"
      "}}\n"
      "compdef _plimsoll plimsoll\n",
      verbs, cases, models);
}

Action bind_completion(Command& command) {
  auto shell = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("SHELL", *shell, "bash or zsh").type_name("bash|zsh").required();
  command.add_flag("--json", *json, "one JSON object");
  return [shell, json, &command]() -> Status {
    if (*shell != "bash" && *shell != "zsh")
      return fail(ErrorCode::kUsage, "completion '{}': there is one for bash and one for zsh",
                  *shell);
    PLIMSOLL_TRY(const std::vector<api::ModelSummary> models, api::list_models());
    std::vector<std::string> names;
    for (const api::ModelSummary& model : models) names.push_back(model.name);
    const std::vector<VerbRow> table = option_table(command);
    const std::string script =
        *shell == "bash" ? bash_script(table, joined(names)) : zsh_script(table, joined(names));
    const std::string text = *json ? json_text(nlohmann::ordered_json{
                                         {"schema", 1}, {"shell", *shell}, {"script", script}}) +
                                         "\n"
                                   : script;
    std::fwrite(text.data(), 1, text.size(), stdout);
    return {};
  };
}

}  // namespace

Verb completion_verb() {
  return {"completion", "the completion script of bash or zsh", kCompletionExamples,
          bind_completion};
}

}  // namespace plimsoll::cli
