#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/exec_program.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/file.h"
#include "plimsoll/cli/short_slices.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

struct ExecOptions {
  api::ExecRequest request;
  std::string statistics;
  bool json = false;
};

nlohmann::json json_of(const api::ExecReport& report) {
  return {{"schema", 1},
          {"exit_code", report.exit_code},
          {"peak_bytes", report.peak.value},
          {"peak_resident_bytes", report.peak_resident.value},
          {"cached_bytes", report.cached.value},
          {"allocations", report.allocations},
          {"purged_bytes", report.purged.value},
          {"faults_saved", report.faults_saved}};
}

Status run(ExecOptions& options) {
  options.request.stdout_to_stderr = options.json;
  ask_for_usual_slices();
  PLIMSOLL_TRY(const api::ExecReport report, api::exec_program(options.request));
  const std::string text = json_of(report).dump();
  if (!options.statistics.empty()) {
    if (Status written = write_file(options.statistics, text + "\n"); !written) return written;
  }
  if (options.json) {
    fmt::print("{}\n", text);
  } else if (report.told) {
    fmt::print(stderr,
               "plimsoll exec: peak {} handed out, {} resident; {} cached at the end; {} "
               "allocations, {} page faults saved\n",
               human(report.peak), human(report.peak_resident), human(report.cached),
               grouped(report.allocations), grouped(report.faults_saved));
  } else {
    fmt::print(stderr,
               "plimsoll exec: the program ended without statistics (a signal, _exit, or a static "
               "program)\n");
  }
  // The program's own code is the answer, whatever it is.
  if (report.exit_code != 0) {
    std::fflush(nullptr);
    std::exit(report.exit_code);
  }
  return {};
}

Action bind_exec(Command& command) {
  auto options = std::make_shared<ExecOptions>();
  command
      .add_option("program", options->request.command, "the program and its arguments, behind `--`")
      .required();
  command.add_output("--stats", options->statistics, "write the statistics as JSON");
  command.add_option("--trace", options->request.trace, "record every allocation above 32 KiB")
      .type_name("FILE");
  command.add_flag("--check", options->request.check,
                   "find double frees and writes behind a block's end; slow");
  command.add_flag("--json", options->json,
                   "one JSON object on stdout; the program's own output goes to stderr");
  return [options] { return run(*options); };
}

}  // namespace

Verb exec_verb() {
  return {"exec", "run a program on the host allocator",
          "Examples:\n"
          "  plimsoll exec -- python train.py                    # peak, cache and faults saved, "
          "at exit\n"
          "  plimsoll exec --trace t.jsonl -- PROGRAM            # then: plimsoll view t.jsonl -o "
          "report.html\n"
          "  plimsoll exec --check -- PROGRAM                    # canaries and guard pages\n",
          bind_exec};
}

}  // namespace plimsoll::cli
