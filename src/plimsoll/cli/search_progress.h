// A long search on a terminal: one line that follows the best plan, and Ctrl-C that keeps it.
#pragma once

#include <atomic>
#include <functional>

#include "plimsoll/api/planning.h"

namespace plimsoll::cli {

// From now on the first Ctrl-C sets the flag; a second one ends the program.
const std::atomic<bool>* stop_on_interrupt();

// Empty when standard error is no terminal.
std::function<void(const schedule::FitProgress&)> progress_on_terminal();

}  // namespace plimsoll::cli
