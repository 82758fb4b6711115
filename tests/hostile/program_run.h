// The program itself, given a file that wants to do harm: the base of every test that replays such
// files.
//
// A test writes the file (large ones are made on the spot, none is in the repository) and names the
// command that reads it. expect_refused() wants exit code 3, one line on stderr that says why, less
// than a second of processor time and less than 200 MB; both are measured by the kernel (wait4), so
// nothing in the program can hide from them.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/base/file.h"

namespace plimsoll::hostile {

// A sanitizer reserves terabytes of addresses and is slow: it checks the answers, not the limits.
#ifdef PLIMSOLL_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

inline constexpr double kMostSeconds = 1;
inline constexpr long kMostKilobytes = 200'000;

struct Outcome {
  int exit_code = -1;  // of a signal: its number, negative
  std::string out;
  std::string error;
  double seconds = 0;
  long kilobytes = 0;
};

class ProgramRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / fmt::format("plimsoll_hostile_{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) const {
    EXPECT_TRUE(write_file(folder_ / name, content));
    return (folder_ / name).string();
  }

  Outcome run(std::vector<std::string> arguments) const {
    const std::filesystem::path out = folder_ / "stdout";
    const std::filesystem::path errors = folder_ / "stderr";
    const pid_t child = ::fork();
    if (child == 0) {
      std::vector<char*> argv{const_cast<char*>("plimsoll")};
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      // Should one slip through, it must not take the machine with it.
      const rlimit most{1ULL << 33, 1ULL << 33};
      if (!kSanitized) ::setrlimit(RLIMIT_AS, &most);
      ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      ::dup2(::open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      ::execv(PLIMSOLL_PROGRAM, argv.data());
      ::_exit(127);
    }
    int status = 0;
    rusage used{};
    ::wait4(child, &status, 0, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            read_file(out).value_or(""), read_file(errors).value_or(""),
            seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss};
  }

  void expect_within_limits(const std::string& what, const Outcome& outcome) const {
    if (kSanitized) return;
    EXPECT_LT(outcome.seconds, kMostSeconds) << what;
    EXPECT_LT(outcome.kilobytes, kMostKilobytes) << what;
  }

  // `why` is a part of the message.
  void expect_refused(const std::string& what, const std::vector<std::string>& arguments,
                      const std::string& why, int exit_code = 3) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << what << ": " << outcome.error.substr(0, 500);
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1)
        << what << ": " << outcome.error.substr(0, 500);
    EXPECT_NE(outcome.error.find(why), std::string::npos)
        << what << ": " << outcome.error.substr(0, 500);
    expect_within_limits(what, outcome);
  }

  std::filesystem::path folder_;
};

}  // namespace plimsoll::hostile
