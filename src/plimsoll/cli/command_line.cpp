#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "plimsoll/api/version.h"
#include "plimsoll/base/log.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 our own fault, 2 wrong usage, 3 bad input file, 4 does not fit,\n"
    "5 no answer in the time given, 6 device missing or failed.\n"
    "`plimsoll VERB --help` shows a verb's options with examples.";

int report(const Error& error) {
  std::fprintf(stderr, "plimsoll: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

// CLI11 has exit codes of its own (105 to 109); ours is 2 for every wrong command line.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  const bool asked_for_help = error.get_exit_code() == 0;
  app.exit(error);
  return asked_for_help ? 0 : static_cast<int>(ErrorCode::kUsage);
}

int run_action(const Action& action) {
  try {
    const Status status = action();
    return status ? 0 : report(status.error());
  } catch (const std::bad_alloc&) {
    return report({ErrorCode::kInternal, "out of memory on this machine"});
  } catch (const std::exception& problem) {
    return report({ErrorCode::kInternal, problem.what()});
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  CLI::App app("The memory system for deep-learning programs: plan, pack, fit, run and see every byte.",
               "plimsoll");
  app.set_version_flag("--version", std::string("plimsoll ") + api::version());
  app.require_subcommand(1);
  app.footer(kFooter);
  std::string level;
  app.add_option("--log-level", level, "trace, debug, info, warn, error or off (default warn)");

  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Verb& verb : verbs()) {
    CLI::App* command = app.add_subcommand(verb.name, verb.summary);
    command->footer(verb.examples);
    actions.emplace_back(command, verb.bind(*command));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  }
  log::start(level);
  for (const auto& [command, action] : actions) {
    if (command->parsed()) return run_action(action);
  }
  return static_cast<int>(ErrorCode::kUsage);
}

}  // namespace plimsoll::cli
