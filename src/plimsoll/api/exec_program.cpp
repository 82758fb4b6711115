#include "plimsoll/api/exec_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <nlohmann/json.hpp>

#include "plimsoll/base/file.h"

namespace plimsoll::api {
namespace {

constexpr const char* kLibrary = "libplimsoll_malloc.so";

// Beside the program in a build, in ../lib or ../lib/TRIPLE when installed.
Result<std::filesystem::path> find_library() {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path folder = program.parent_path();
  for (const auto& place : {folder, folder / "../lib", folder / "../lib/x86_64-linux-gnu",
                            folder / "../lib/aarch64-linux-gnu"}) {
    if (std::filesystem::exists(place / kLibrary, ignored))
      return std::filesystem::canonical(place / kLibrary, ignored);
  }
  return fail(ErrorCode::kBadInput, "{} is neither beside {} nor in ../lib; `make build` makes it",
              kLibrary, program.string());
}

void set(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

// In the child: never returns. Writes errno to `failed` when the program cannot be started.
[[noreturn]] void become(const ExecRequest& request, const std::string& library,
                         const std::string& statistics, int failed) {
  const char* others = std::getenv("LD_PRELOAD");
  set("LD_PRELOAD", others != nullptr && *others != '\0' ? library + ":" + others : library);
  set("PLIMSOLL_MALLOC_STATS", statistics);
  set("PLIMSOLL_MALLOC_PROCESS", std::to_string(::getpid()));
  if (!request.trace.empty()) set("PLIMSOLL_MALLOC_TRACE", request.trace.string());
  if (request.check) set("PLIMSOLL_MALLOC_CHECK", "1");
  if (request.stdout_to_stderr) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : request.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int problem = errno;
  if (::write(failed, &problem, sizeof problem) < 0) ::_exit(126);
  ::_exit(127);
}

// A key pressed on the terminal goes to both; the program decides, and we stay for its statistics.
class IgnoredKeys {
 public:
  IgnoredKeys() : interrupt_(::signal(SIGINT, SIG_IGN)), quit_(::signal(SIGQUIT, SIG_IGN)) {}
  ~IgnoredKeys() { restore(); }
  void restore() const {
    ::signal(SIGINT, interrupt_);
    ::signal(SIGQUIT, quit_);
  }

 private:
  sighandler_t interrupt_;
  sighandler_t quit_;
};

void read_statistics(const std::filesystem::path& file, ExecReport& report) {
  const auto text = read_file(file);
  const auto told = text ? nlohmann::json::parse(*text, nullptr, false) : nlohmann::json();
  if (!told.is_object()) return;
  report.told = true;
  report.peak = Bytes{told.value("peak_bytes", std::int64_t{0})};
  report.peak_resident = Bytes{told.value("peak_resident_bytes", std::int64_t{0})};
  report.cached = Bytes{told.value("cached_bytes", std::int64_t{0})};
  report.purged = Bytes{told.value("purged_bytes", std::int64_t{0})};
  report.allocations = told.value("allocations", std::int64_t{0});
  report.faults_saved = told.value("faults_saved", std::int64_t{0});
}

}  // namespace

Result<ExecReport> exec_program(const ExecRequest& request) {
  PLIMSOLL_TRY(const std::filesystem::path library, find_library());
  char name[] = "/tmp/plimsoll-exec-XXXXXX";
  const int statistics = ::mkstemp(name);
  int failed[2];
  if (statistics < 0 || ::pipe2(failed, O_CLOEXEC) != 0) {
    return fail(ErrorCode::kInternal, "cannot make a file for statistics in /tmp: {}",
                std::strerror(errno));
  }
  ::close(statistics);
  const IgnoredKeys keys;
  const pid_t child = ::fork();
  if (child == 0) {
    keys.restore();
    become(request, library.string(), name, failed[1]);
  }
  ::close(failed[1]);
  ExecReport report;
  int problem = 0;
  const bool started = child > 0 && ::read(failed[0], &problem, sizeof problem) == 0;
  ::close(failed[0]);
  int status = 0;
  if (child > 0) ::waitpid(child, &status, 0);
  read_statistics(name, report);
  ::unlink(name);
  if (!started) {
    return fail(ErrorCode::kBadInput, "cannot run '{}': {}", request.command.front(),
                std::strerror(child < 0 ? errno : problem));
  }
  report.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return report;
}

}  // namespace plimsoll::api
