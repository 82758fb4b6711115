#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/version.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/nearest_name.h"
#include "plimsoll/cli/help.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kManExamples =
    "  plimsoll man > plimsoll.1; man ./plimsoll.1      the whole manual (`make install` installs "
    "it)\n"
    "  plimsoll man plan > plan.1; man ./plan.1         one verb";

// Text of roff: a backslash, a minus and a leading dot or quote mean something there.
std::string roff(std::string_view text) {
  std::string out;
  bool start = true;
  for (const char c : text) {
    if (start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    start = c == '\n';
  }
  return out;
}

std::string options_roff(const VerbRow& verb) {
  std::string out;
  std::string group;
  for (const OptionRow& option : verb.options) {
    if (option.group != group) out += fmt::format(".PP\n{}:\n", roff(option.group));
    group = option.group;
    out += fmt::format(".TP\n.B {}\n{}\n", roff(heading_of(option)), roff(option.help));
  }
  return out;
}

std::string examples_roff(const VerbRow& verb) {
  return fmt::format(".PP\n.nf\n{}\n.fi\n", roff(verb.examples));
}

std::string exit_roff() {
  std::string out = ".SH EXIT STATUS\n";
  for (std::size_t code = 0; code < std::size(kExitCodes); ++code)
    out += fmt::format(".TP\n.B {}\n{}\n", code, kExitCodes[code]);
  return out;
}

constexpr const char* kEnvironment =
    ".SH ENVIRONMENT\n"
    ".TP\n.B NO_COLOR\nno colour, even on a terminal\n"
    ".TP\n.B PLIMSOLL_LOG\nlevel of the log on standard error: trace, debug, info, warn (default), "
    "error or off\n";

std::string verb_page(const VerbRow& verb) {
  return fmt::format(
             ".TH \"PLIMSOLL\\-{0}\" 1 \"\" \"plimsoll {1}\" \"User Commands\"\n.SH "
             "NAME\nplimsoll\\-{0} \\- {2}\n.SH SYNOPSIS\n.B plimsoll {0}\n{3}\n",
             roff(verb.name), api::version(), roff(verb.summary), roff(usage_of(verb))) +
         ".SH EXAMPLES\n" + examples_roff(verb) + ".SH OPTIONS\n" + options_roff(verb) +
         exit_roff() + kEnvironment;
}

std::string whole_page(const std::vector<VerbRow>& table) {
  std::string out = fmt::format(
      ".TH PLIMSOLL 1 \"\" \"plimsoll {}\" \"User Commands\"\n.SH NAME\nplimsoll \\- the memory "
      "system for deep\\-learning programs\n"
      ".SH SYNOPSIS\n.B plimsoll\nVERB [OPTIONS]\n.SH DESCRIPTION\n"
      "Takes a model, builds the graph that trains it, works out how to run that graph inside the "
      "memory there is, runs it, "
      "and shows where every byte went. A MODEL is a built\\-in name, an .onnx file or a .graph "
      "file. Sizes are written 1.5GiB, 800MB, "
      "123456 or 40%: MB is 10^6 bytes, MiB is 2^20. Every verb takes\n.B \\-\\-json\n"
      "and then prints one JSON object with a schema number on standard output; everything else "
      "goes to standard error. "
      "Files are written whole or not at all.\n",
      api::version());
  for (const VerbRow& verb : table) {
    out += fmt::format(".SH {}\n{}.\n.PP\n.B plimsoll {}\n{}\n", roff(verb.name),
                       roff(verb.summary), roff(verb.name), roff(usage_of(verb)));
    out += examples_roff(verb) + options_roff(verb);
  }
  return out + exit_roff() + kEnvironment;
}

Result<std::string> page_of(const std::vector<VerbRow>& table, const std::string& name) {
  if (name.empty()) return whole_page(table);
  std::vector<std::string> names;
  for (const VerbRow& verb : table) {
    if (verb.name == name) return verb_page(verb);
    names.push_back(verb.name);
  }
  const std::string near = nearest_name(name, names);
  return fail(ErrorCode::kUsage, "man '{}': no verb has this name{}", name,
              near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

Action bind_man(Command& command) {
  auto verb = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("VERB", *verb, "only this one");
  command.add_flag("--json", *json, "one JSON object");
  return [verb, json, &command]() -> Status {
    PLIMSOLL_TRY(std::string page, page_of(option_table(command), *verb));
    if (*json) page = json_text(nlohmann::ordered_json{{"schema", 1}, {"page", page}}) + "\n";
    std::fwrite(page.data(), 1, page.size(), stdout);
    return {};
  };
}

}  // namespace

Verb man_verb() {
  return {"man", "the manual page", kManExamples, bind_man};
}

}  // namespace plimsoll::cli
