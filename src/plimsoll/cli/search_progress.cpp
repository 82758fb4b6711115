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

// How often a line is written where it cannot be written over.
constexpr std::chrono::seconds kBetweenLines(10);

bool on_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

// The line: written by a thread of its own, because work may be silent for seconds.
class ProgressLine {
 public:
  // Nothing is written before `quiet`, so that what is quickly done leaves no trace.
  ProgressLine(std::string what, std::optional<double> deadline_seconds,
               std::chrono::milliseconds quiet)
      : what_(std::move(what)),
        deadline_(deadline_seconds),
        quiet_(quiet),
        writer_([this] { write_until_done(); }) {}

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

  void found(std::string best) {
    const std::lock_guard lock(mutex_);
    best_ = std::move(best);
  }

 private:
  std::string text() const {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
    std::string out = fmt::format("{}{:.1f} s", what_, elapsed.count());
    if (deadline_)
      out += fmt::format(", {:.1f} s left", std::max(0.0, *deadline_ - elapsed.count()));
    return best_.empty() ? out : out + ": " + best_;
  }

  // In a file or a pipe lines stay, so there are few of them.
  void write_lines_until_done() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kBetweenLines, [this] { return done_; }))
      std::fprintf(stderr, "%s\n", text().c_str());
  }

  void write_until_done() {
    if (!on_terminal()) return write_lines_until_done();
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, quiet_, [this] { return done_; })) return;
    while (!wake_.wait_for(lock, std::chrono::milliseconds(200), [this] { return done_; }))
      std::fprintf(stderr, "\r%s\033[K", text().c_str());
    std::fprintf(stderr, "\r\033[K");
  }

  const std::string what_;
  const std::optional<double> deadline_;
  const std::chrono::milliseconds quiet_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::string best_;
  std::thread writer_;
};

}  // namespace

const std::atomic<bool>* stop_on_interrupt() {
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGUSR1, ask_to_stop);  // how mpirun tells ranks (api/launch_ranks.h)
  return &stop_asked;
}

std::string cost_text(double seconds, int digits) {
  constexpr double kMostSeconds = 1e7;
  return fmt::format("{:.{}g}{}", seconds, digits, seconds < kMostSeconds ? " s" : "");
}

api::OnBetter progress_on_terminal(double deadline_seconds) {
  auto line = std::make_shared<ProgressLine>("", deadline_seconds, std::chrono::milliseconds(0));
  return [line](double seconds, Bytes peak) {
    line->found(fmt::format("{} a step within {}", cost_text(seconds, 4), human(peak)));
  };
}

std::shared_ptr<void> waiting_on_terminal(const std::string& what,
                                          std::optional<double> deadline_seconds) {
  return std::make_shared<ProgressLine>(what + " ", deadline_seconds, std::chrono::seconds(2));
}

void progress_line(const std::string& text) {
  if (on_terminal()) {
    std::fprintf(stderr, "\r%-60s\r", text.c_str());
    return;
  }
  // The first text begins the ten seconds.
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::rep> last{Clock::now().time_since_epoch().count()};
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (text.empty() || Clock::duration(now - last.load()) < kBetweenLines) return;
  last.store(now);
  std::fprintf(stderr, "%s\n", text.c_str());
}

void measuring_operators(std::size_t done, std::size_t all) {
  progress_line(fmt::format("measuring operators {}/{}", done, all));
}

}  // namespace plimsoll::cli
