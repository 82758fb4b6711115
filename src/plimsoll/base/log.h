// The one logger: levels on stderr, nothing on stdout. Library code logs decisions, not progress.
#pragma once

#include <string_view>

#include <spdlog/spdlog.h>

namespace plimsoll::log {

// Sends every message to stderr as "plimsoll: warning: text", level `warn` unless told otherwise by
// --log-level or PLIMSOLL_LOG (trace, debug, info, warn, error, off). Called once by main.
void start(std::string_view level = {});

using spdlog::debug;
using spdlog::error;
using spdlog::info;
using spdlog::warn;

}  // namespace plimsoll::log
