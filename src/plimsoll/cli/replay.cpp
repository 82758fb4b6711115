#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/replaying.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

struct ReplayOptions {
  api::ReplayRequest request;
  std::string capacity;
  bool json = false;
};

void print_table(const api::ReplayReport& report) {
  fmt::print("{} events, at most {} alive\n\n", grouped(report.events), human(report.peak_live));
  fmt::print("{:<28}{:>16}{:>11}{:>10}{:>10}{:>8}{:>9}{:>7}\n", "allocator", "reserved",
             "over live", "from dev.", "remapped", "waits", "ns/op", "failed");
  for (const api::ReplayRow& row : report.rows) {
    // Where allocations failed, what it takes without a limit: the rest of a run that stopped
    // short says nothing about waste.
    const bool failed = row.out_of_memory > 0;
    fmt::print("{:<28}{:>16}{:>10.2f}%{:>10}{:>10}{:>8}{:>9.0f}{:>7}\n",
               fmt::format("{}{}", row.name, row.model ? " (model)" : ""),
               failed ? "needs " + human(row.needed) : human(row.peak_reserved), 100 * row.overhead,
               row.device_allocations, row.pages_remapped, row.stream_waits, row.ns_per_operation,
               row.out_of_memory);
  }
}

Status run(const ReplayOptions& options, Command& command) {
  api::ReplayRequest request = options.request;
  if (!options.capacity.empty()) {
    PLIMSOLL_TRY(request.capacity, parse_byte_size(options.capacity));
    if (request.capacity.value <= 0) {
      return fail(ErrorCode::kUsage, "--capacity {}: expected more than nothing", options.capacity);
    }
  }
  auto waiting = waiting_on_terminal("replaying");
  PLIMSOLL_TRY(const api::ReplayReport report, api::replay_trace(request));
  waiting.reset();
  if (options.json) {
    command.answer(json_text(api::to_json(report), 2));
  } else {
    print_table(report);
  }
  for (const api::ReplayRow& row : report.rows) {
    if (row.out_of_memory == 0) continue;
    return fail(
        ErrorCode::kDoesNotFit,
        "{}: {} of the allocations do not fit in {}; without a limit it takes {}. The first is "
        "{}{}{}",
        row.name, row.out_of_memory, human(request.capacity), human(row.needed),
        row.first_failed_event < 0
            ? std::string("a block that was there before the recording began")
            : fmt::format("event {} of {}", grouped(row.first_failed_event),
                          grouped(report.events)),
        row.first_failure.empty() ? "" : ": ", row.first_failure);
  }
  return {};
}

Action bind_replay(Command& command) {
  auto options = std::make_shared<ReplayOptions>();
  command
      .add_input("trace", options->request.trace,
                 "a PyTorch snapshot (.pickle, .gz), our trace (.jsonl), - for standard input, or "
                 "pipeline:SEED")
      .required();
  command
      .add_option("--allocator", options->request.allocators,
                  "all, or a list of plimsoll, pytorch, pytorch-expandable, pytorch-roundup, "
                  "best-fit, buddy (default plimsoll)")
      .type_name("LIST");
  command.add_option("--capacity", options->capacity, "would it have fitted? e.g. 24GiB")
      .type_name("SIZE");
  command.add_flag("--json", options->json, "one JSON object on stdout");
  return [options, &command] { return run(*options, command); };
}

}  // namespace

Verb replay_verb() {
  return {
      "replay", "the same allocations on any allocator: what would it have reserved?",
      "Examples:\n"
      "  plimsoll replay snapshot.pickle.gz --allocator all\n"
      "  plimsoll replay snapshot.pickle --capacity 24GiB     # exit code 4 when it does not fit\n"
      "  plimsoll replay pipeline:1 --allocator all --json\n",
      bind_replay};
}

}  // namespace plimsoll::cli
