// Long work: on a terminal one line that follows it, elsewhere a line every ten seconds on standard
// error; and Ctrl-C that keeps the best plan.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "plimsoll/api/plan_request.h"

namespace plimsoll::cli {

// From now on the first Ctrl-C sets the flag; a second one ends the program.
const std::atomic<bool>* stop_on_interrupt();

// "0.1134 s"; without the unit from 1e7 on: no step takes months, a DAG may be weighed by
// operations.
std::string cost_text(double seconds, int digits);

// Writes "1.2 s, 1.8 s left: 0.1134 s within 466.3 MiB" to standard error while the function lives,
// and wipes it when the last copy goes: drop it before printing results. Where standard error is no
// terminal, such a line every ten seconds.
api::OnBetter progress_on_terminal(double deadline_seconds);

// Writes "packing 3.1 s, 6.9 s left" to standard error once the work has taken two seconds, and
// wipes it when what is returned goes; elsewhere as above.
std::shared_ptr<void> waiting_on_terminal(const std::string& what,
                                          std::optional<double> deadline_seconds = {});

// Shows what is being done, over the line before; an empty text clears it. Where standard error is
// no terminal, at most one line every ten seconds.
void progress_line(const std::string& text);
// "measuring operators 17/203", as a line of progress.
void measuring_operators(std::size_t done, std::size_t all);

}  // namespace plimsoll::cli
