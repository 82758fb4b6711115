#include "plimsoll/api/launch_ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>

#include <fmt/format.h>

#include "plimsoll/dist/open_communicator.h"

namespace plimsoll::api {
namespace {

// The words that this process was started with. The file says that it has no bytes, and has some.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    out.emplace_back(text.c_str() + at);
    at += out.back().size() + 1;
  }
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (!code && !out.empty()) out.front() = program.string();
  return out;
}

std::vector<std::string> words_for_mpirun(int ranks) {
  std::vector<std::string> out{"mpirun",          "-n",        std::to_string(ranks),
                               "--oversubscribe", "--bind-to", "none"};
  if (::geteuid() == 0) out.emplace_back("--allow-run-as-root");
  const std::vector<std::string> own = own_words();
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

constexpr unsigned kMostRanksOfCore = 16;

// More of them on a core are a slip of the finger, after which the machine would not answer.
Status check_rank_count(int ranks) {
  if (const int tasks = dist::tasks_without_mpi(); tasks > 0)
    return fail(
        ErrorCode::kUsage,
        "--ranks {}: srun started {} tasks without MPI, and each would start {} ranks; give "
        "srun --mpi=pmix, or leave srun out",
        ranks, tasks, ranks);
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  if (static_cast<unsigned>(ranks) <= kMostRanksOfCore * cores) return {};
  return fail(ErrorCode::kUsage,
              "--ranks {}: at most {} are started on this machine, which has {} cores; `plimsoll "
              "plan --ranks {}` plans on paper, and `mpirun -n {} -H HOSTS plimsoll run` starts as "
              "many as you like",
              ranks, kMostRanksOfCore * cores, cores, ranks, ranks);
}

// Whom signals are handed on to, and how.
volatile pid_t mpirun_process = 0;
volatile sig_atomic_t next_signal = SIGTERM;
volatile sig_atomic_t ended_by = 0;  // the signal

void hand_on(int signal) {
  const int handed = signal == SIGINT ? next_signal : SIGTERM;
  if (mpirun_process > 0) ::kill(mpirun_process, handed);
  if (handed == SIGTERM) ended_by = signal;
  next_signal = SIGTERM;
}

// SIGINT, SIGTERM and SIGHUP are handed on while this lives, but for those that are ignored: a run
// that nohup started outlives the terminal with all its ranks.
class HandedOn {
 public:
  HandedOn() {
    struct sigaction how {};
    how.sa_handler = hand_on;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &how, nullptr);
    }
  }
  ~HandedOn() {
    for (std::size_t i = 0; i < kSignals.size(); ++i)
      ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  HandedOn(const HandedOn&) = delete;
  HandedOn& operator=(const HandedOn&) = delete;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
};

// In the child. Writes errno to `failed` when mpirun cannot be started.
[[noreturn]] void become_mpirun(const std::vector<std::string>& words, int errors, int failed,
                                pid_t parent) {
  ::setpgid(0, 0);
  // Nobody is left behind when we are killed.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(126);
  // A process that the terminal does not know must not read from it.
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(errors, STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int problem = errno;
  if (::write(failed, &problem, sizeof problem) < 0) ::_exit(126);
  ::_exit(127);
}

// Bytes as they come: a progress line without an end is shown too.
void pass_on(int from, LauncherLines& lines) {
  std::string line;
  char piece[4096];
  for (;;) {
    const ssize_t got = ::read(from, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    for (ssize_t i = 0; i < got; ++i) {
      if (piece[i] != '\n') {
        line += piece[i];
        continue;
      }
      for (const std::string& kept : lines.take(line)) std::fprintf(stderr, "%s\n", kept.c_str());
      line.clear();
    }
    std::fflush(stderr);
  }
  if (!line.empty()) {
    for (const std::string& kept : lines.take(line)) std::fprintf(stderr, "%s", kept.c_str());
  }
}

}  // namespace

void LauncherLines::read_block(const std::string& line) {
  static const std::regex kSignal(
      R"(process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+)(?: \(([^)]*)\))?)");
  static const std::regex kCode(R"(Process name: \[\[\d+,\d+\],(\d+)\])");
  static const std::regex kLost(R"(ORTE has lost communication with a remote daemon|node failure)");
  std::smatch found;
  if (std::regex_search(line, found, kSignal)) {
    dead_ = fmt::format("rank {} on {} was ended by signal {}{}; all ranks end", found[1].str(),
                        found[2].str(), found[3].str(),
                        found[4].matched ? " (" + found[4].str() + ")" : "");
  } else if (dead_.empty() && std::regex_search(line, found, kCode)) {
    dead_ = fmt::format("rank {} left without a word; all ranks end", found[1].str());
  } else if (dead_.empty() && std::regex_search(line, found, kLost)) {
    dead_ = "the machine of a rank cannot be reached; all ranks end";
  }
  if (first_.empty() && line.find_first_not_of(" \t") != std::string::npos) first_ = line;
}

std::vector<std::string> LauncherLines::take(const std::string& line) {
  const bool rule = line.size() >= 20 && line.find_first_not_of('-') == std::string::npos;
  if (rule) {
    in_block_ = !in_block_;
    return {};
  }
  if (in_block_) {
    read_block(line);
    return {};
  }
  // "[host:1234] ..." is mpirun or MPI itself.
  static const std::regex kOwn(R"(^\[[^\]:]+:\d+\] |^mpirun: )");
  if (line.empty() || std::regex_search(line, kOwn)) return {};
  if (line.find("plimsoll: ") == std::string::npos) return {line};
  said_ = true;
  // What all ranks find out by themselves is said once.
  return errors_.insert(line).second ? std::vector<std::string>{line} : std::vector<std::string>{};
}

std::string LauncherLines::verdict(int exit_code) const {
  if (exit_code == 0) return {};
  if (!dead_.empty() && (!said_ || dead_.find("signal") != std::string::npos)) return dead_;
  if (said_) return {};
  return first_.empty() ? "" : fmt::format("mpirun: {}", first_);
}

Result<int> launch_ranks(int ranks, bool stops) {
  PLIMSOLL_RETURN_IF_ERROR(check_rank_count(ranks));
  PLIMSOLL_RETURN_IF_ERROR(dist::find_mpi());
  const std::vector<std::string> words = words_for_mpirun(ranks);
  const pid_t self = ::getpid();
  int errors[2], failed[2];
  if (::pipe2(errors, O_CLOEXEC) != 0 || ::pipe2(failed, O_CLOEXEC) != 0)
    return fail(ErrorCode::kInternal, "--ranks: no pipe: {}", std::strerror(errno));
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) become_mpirun(words, errors[1], failed[1], self);
  mpirun_process = child;
  next_signal = stops ? SIGUSR1 : SIGTERM;
  ended_by = 0;
  const HandedOn handed_on;
  ::close(errors[1]);
  ::close(failed[1]);
  int problem = 0;
  const bool started = child > 0 && ::read(failed[0], &problem, sizeof problem) == 0;
  ::close(failed[0]);
  LauncherLines lines;
  if (started) pass_on(errors[0], lines);
  ::close(errors[0]);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  mpirun_process = 0;
  if (!started)
    return fail(ErrorCode::kDevice,
                "--ranks: mpirun cannot be started: {}; it comes with the package openmpi-bin",
                std::strerror(child > 0 ? problem : errno));
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (ended_by != 0) return 128 + ended_by;
  const std::string verdict = lines.verdict(code);
  if (!verdict.empty()) {
    std::fprintf(stderr, "plimsoll: %s\n", verdict.c_str());
    if (code > static_cast<int>(ErrorCode::kDevice)) code = static_cast<int>(ErrorCode::kDevice);
  }
  return code;
}

}  // namespace plimsoll::api
