#include "plimsoll/cli/search_progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "plimsoll/base/byte_size.h"

namespace plimsoll::cli {
namespace {

std::atomic<bool> stop_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void ask_to_stop(int) {
  stop_asked.store(true);
  std::signal(SIGINT, SIG_DFL);
}

// The line: written by a thread of its own, because a search may be silent for seconds.
class ProgressLine {
 public:
  explicit ProgressLine(double deadline_seconds) : deadline_(deadline_seconds), writer_([this] { write_until_done(); }) {}

  ~ProgressLine() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    writer_.join();
  }

  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void found(const schedule::FitProgress& better) {
    const std::lock_guard lock(mutex_);
    best_ = better;
  }

 private:
  void write_until_done() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(200), [this] { return done_; })) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
      std::string line = fmt::format("{:.1f} s, {:.1f} s left", elapsed.count(), std::max(0.0, deadline_ - elapsed.count()));
      if (best_) line += fmt::format(": {:.4g} s a step within {}", best_->seconds, human(best_->peak_bytes));
      std::fprintf(stderr, "\r%s\033[K", line.c_str());
    }
    std::fprintf(stderr, "\r\033[K");
  }

  const double deadline_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::optional<schedule::FitProgress> best_;
  std::thread writer_;
};

}  // namespace

const std::atomic<bool>* stop_on_interrupt() {
  std::signal(SIGINT, ask_to_stop);
  return &stop_asked;
}

std::function<void(const schedule::FitProgress&)> progress_on_terminal(double deadline_seconds) {
  if (isatty(STDERR_FILENO) != 1) return {};
  auto line = std::make_shared<ProgressLine>(deadline_seconds);
  return [line](const schedule::FitProgress& better) { line->found(better); };
}

void progress_line(const std::string& text) {
  if (isatty(STDERR_FILENO) == 1) std::fprintf(stderr, "\r%-60s\r", text.c_str());
}

void measuring_operators(std::size_t done, std::size_t all) { progress_line(fmt::format("measuring operators {}/{}", done, all)); }

}  // namespace plimsoll::cli
