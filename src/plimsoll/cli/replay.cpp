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
  fmt::print("{:<28}{:>14}{:>11}{:>10}{:>10}{:>8}{:>9}{:>7}\n", "allocator", "reserved",
             "over live", "from dev.", "remapped", "waits", "ns/op", "failed");
  for (const trace::ReplayOutcome& outcome : report.outcomes) {
    const bool model = outcome.policy != trace::Policy::kPlimsoll;
    fmt::print("{:<28}{:>14}{:>+10.2f}%{:>10}{:>10}{:>8}{:>9.0f}{:>7}\n",
               fmt::format("{}{}", trace::to_string(outcome.policy), model ? " (model)" : ""),
               human(outcome.peak_reserved), 100 * outcome.overhead, outcome.device_allocations,
               outcome.pages_remapped, outcome.stream_waits, outcome.ns_per_operation,
               outcome.out_of_memory);
  }
}

Status run(const ReplayOptions& options) {
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
    fmt::print("{}\n", json_text(api::to_json(report), 2));
  } else {
    print_table(report);
  }
  for (std::size_t index = 0; index < report.outcomes.size(); ++index) {
    const trace::ReplayOutcome& outcome = report.outcomes[index];
    if (outcome.out_of_memory == 0) continue;
    return fail(
        ErrorCode::kDoesNotFit,
        "{}: {} of the allocations do not fit in {}; without a limit it takes {}. The first is "
        "event {} of {}{}{}",
        trace::to_string(outcome.policy), outcome.out_of_memory, human(request.capacity),
        human(report.needed[index]), grouped(outcome.first_failed_event), grouped(report.events),
        outcome.first_failure.empty() ? "" : ": ", outcome.first_failure);
  }
  return {};
}

Action bind_replay(Command& command) {
  auto options = std::make_shared<ReplayOptions>();
  command
      .add_option("trace", options->request.trace,
                  "a PyTorch snapshot (.pickle, .gz), our trace (.jsonl), or pipeline:SEED")
      .required();
  command
      .add_option("--allocator", options->request.allocators,
                  "all, or a list of plimsoll, pytorch, pytorch-expandable, pytorch-roundup, "
                  "best-fit, buddy (default plimsoll)")
      .type_name("LIST");
  command.add_option("--capacity", options->capacity, "would it have fitted? e.g. 24GiB")
      .type_name("SIZE");
  command.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run(*options); };
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
