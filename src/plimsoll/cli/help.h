// The text of `plimsoll --help` and `plimsoll VERB --help`.
//
// The first teaches on one screen: a few commands for each reason to come here, the verbs, the exit
// codes. A verb's help begins with examples; options follow under their headings.
#pragma once

#include <span>
#include <string>

#include "plimsoll/cli/option_table.h"

namespace plimsoll::cli {

std::string program_help(std::span<const VerbRow> verbs);
std::string verb_help(const VerbRow& verb);

// "MODEL [MORE...] [OPTIONS]"
std::string usage_of(const VerbRow& verb);
// "-o, --output FILE"
std::string heading_of(const OptionRow& option);

inline constexpr const char* kExitCodes[] = {"done",
                                             "internal error",
                                             "wrong usage",
                                             "bad input file",
                                             "does not fit",
                                             "no answer in the time given",
                                             "device missing or failed"};

}  // namespace plimsoll::cli
