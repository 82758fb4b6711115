// `run --ranks N` outside of mpirun: starts mpirun with this very command line, and says in one
// line what ended the ranks when something did.
//
// mpirun refuses to start as root and to start more ranks than there are cores; both are asked for
// (the first only when we are root), because whoever says --ranks means it. Ranks are bound to no
// cores: their threads are counted instead (ranks.h).
//
// mpirun explains failures in blocks between rules. They are kept from the terminal; what they say
// of a rank (the signal or the code it ended with) becomes one line, unless the rank that failed
// has said one itself. Everything else passes through, standard output untouched.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"

namespace plimsoll::api {

// The exit code: of the ranks. kDevice where mpirun is not there, kUsage for more ranks than this
// machine could start. The first Ctrl-C tells the ranks to stop after their step, by SIGUSR1, where
// they can (`stops`); any other, and SIGTERM and SIGHUP, end them. mpirun is kept out of the
// terminal's reach, because it would end them at once, and ends when this process is killed.
Result<int> launch_ranks(int ranks, bool stops);

// Reads what mpirun and the ranks write to standard error, line by line.
class LauncherLines {
 public:
  // What of it is passed on; a line without its end.
  std::vector<std::string> take(const std::string& line);
  // What is to be said when all is over, with this code of mpirun's; empty: nothing.
  std::string verdict(int exit_code) const;

 private:
  void read_block(const std::string& line);

  bool in_block_ = false;
  bool said_ = false;  // a rank said what ended it
  std::set<std::string> errors_;
  std::string dead_;   // of a rank, from mpirun's words
  std::string first_;  // of mpirun's words, where nothing else is known
};

}  // namespace plimsoll::api
