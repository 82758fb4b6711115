#include "plimsoll/cli/search_progress.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "plimsoll/base/byte_size.h"

namespace plimsoll::cli {
namespace {

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void ask_to_stop(int) {
  stop_asked.store(true);
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

const std::atomic<bool>* stop_on_interrupt() {
  std::signal(SIGINT, ask_to_stop);
  return &stop_asked;
}

std::function<void(const schedule::FitProgress&)> progress_on_terminal() {
  if (isatty(STDERR_FILENO) != 1) return {};
  return [](const schedule::FitProgress& progress) {
    std::fprintf(stderr, "\r%.2f s: %.6g s within %s   \r", progress.elapsed, progress.seconds, human(progress.peak_bytes).c_str());
  };
}

}  // namespace plimsoll::cli
