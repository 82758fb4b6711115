// A verb of the command line: `plimsoll pack`, `plimsoll plan`, ...
//
// A verb is one file and one row of the table in verbs.cpp. Its `bind` adds options to its own
// subcommand and returns what to do when a user chose it. It prints results to stdout and nothing
// else there; an Error it returns is printed to stderr and its code becomes the exit code.
#pragma once

#include <functional>
#include <span>

#include "plimsoll/base/result.h"
#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

using Action = std::function<Status()>;

struct Verb {
  const char* name;
  const char* summary;   // one line, for `plimsoll --help`
  const char* examples;  // shown under the options of `plimsoll VERB --help`
  Action (*bind)(Command&);
};

std::span<const Verb> verbs();

// Parses the arguments, runs the verb, and returns the exit code.
int run_command_line(int argc, const char* const* argv);
// Results that did not arrive are a failure: the exit code, after the last bytes of standard output
// are written.
int finish_stdout(int exit_code);

}  // namespace plimsoll::cli
