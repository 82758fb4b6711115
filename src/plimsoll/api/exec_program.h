// `plimsoll exec -- PROGRAM`: runs a program on the host allocator (malloc/) and reads what it says
// at exit.
//
// The library is preloaded, so the program needs no change. It writes its statistics when the
// process that was started here ends; its children run on the allocator too but write nothing. A
// program that ends without running exit handlers (a signal, _exit, a static program, one that
// clears LD_PRELOAD) leaves no statistics: `told` is false then.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::api {

struct ExecRequest {
  std::vector<std::string> command;  // the program, found by PATH, and its arguments
  std::filesystem::path trace;       // empty: none
  bool check = false;                // canaries and guard pages
  bool stdout_to_stderr = false;     // leaves standard output to the caller
};

struct ExecReport {
  int exit_code = 0;  // 128 + the signal that ended it
  bool told = false;
  Bytes peak{0};  // most bytes handed out at once; small blocks count by their pages
  Bytes peak_resident{0};
  Bytes cached{0};  // at the end
  Bytes purged{0};
  std::int64_t allocations = 0;
  std::int64_t faults_saved = 0;
};

Result<ExecReport> exec_program(const ExecRequest& request);

}  // namespace plimsoll::api
