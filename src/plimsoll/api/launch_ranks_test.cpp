#include "plimsoll/api/launch_ranks.h"

#include <gtest/gtest.h>

namespace plimsoll::api {
namespace {

const std::string kRule(74, '-');

std::vector<std::string> passed(LauncherLines& lines, const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    for (const std::string& line : lines.take(word)) out.push_back(line);
  }
  return out;
}

TEST(LauncherLines, NameTheRankAndItsSignal) {
  LauncherLines lines;
  const auto kept = passed(
      lines, {"step 1", kRule,
              "mpirun noticed that process rank 1 with PID 4711 on node vm exited on signal 9 "
              "(Killed).",
              kRule});
  EXPECT_EQ(kept, std::vector<std::string>{"step 1"});
  EXPECT_EQ(lines.verdict(137), "rank 1 on vm was ended by signal 9 (Killed); all ranks end");
  EXPECT_EQ(lines.verdict(0), "");
}

TEST(LauncherLines, LeaveTheWordToARankThatSpoke) {
  LauncherLines lines;
  const auto kept = passed(lines, {"plimsoll: rank 1: no such file", kRule,
                                   "MPI_ABORT was invoked on rank 1 in communicator", kRule,
                                   "[vm:123] 1 more process has sent help message",
                                   "mpirun: Forwarding signal 10 to job"});
  EXPECT_EQ(kept, std::vector<std::string>{"plimsoll: rank 1: no such file"});
  EXPECT_EQ(lines.verdict(3), "");
}

TEST(LauncherLines, SayOnceWhatEveryRankSays) {
  LauncherLines lines;
  const std::string same = "plimsoll: w.npz: No such file or directory";
  EXPECT_EQ(passed(lines, {same, "step 1", same, "step 1"}),
            (std::vector<std::string>{same, "step 1", "step 1"}));
  EXPECT_EQ(lines.verdict(3), "");
}

TEST(LauncherLines, PassOnMpirunsOwnWordsWhereNothingElseIsKnown) {
  LauncherLines lines;
  EXPECT_TRUE(passed(lines, {kRule, "There are not enough slots available", kRule}).empty());
  EXPECT_EQ(lines.verdict(1), "mpirun: There are not enough slots available");
}

}  // namespace
}  // namespace plimsoll::api
