#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/replaying.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

struct ConvertOptions {
  std::string from;
  std::string to;
  bool json = false;
};

Status run(const ConvertOptions& options) {
  auto waiting = waiting_on_terminal("converting");
  PLIMSOLL_TRY(const std::int64_t events, api::convert_trace(options.from, options.to));
  waiting.reset();
  if (options.json) {
    fmt::print("{}\n", json_text(nlohmann::json{{"schema", 1}, {"events", events}}));
  } else {
    fmt::print("{}: {} events\n", options.to, grouped(events));
  }
  return {};
}

Action bind_convert(Command& command) {
  auto options = std::make_shared<ConvertOptions>();
  command.add_option("in", options->from, "a PyTorch snapshot or a trace of ours").required();
  command
      .add_output("-o,--output", options->to,
                  "what to write: .jsonl ours, .pickle PyTorch's, .json Chrome's; .gz after it")
      .required();
  command.add_flag("--json", options->json, "one JSON object on stdout");
  return [options] { return run(*options); };
}

}  // namespace

Verb convert_verb() {
  return {"convert", "between PyTorch snapshots, our traces and Chrome's",
          "Examples:\n"
          "  plimsoll convert snapshot.pickle.gz -o trace.jsonl\n"
          "  plimsoll convert trace.jsonl -o snapshot.pickle     # python -m "
          "torch.cuda._memory_viz reads it\n"
          "  plimsoll convert trace.jsonl -o trace.json          # for ui.perfetto.dev\n",
          bind_convert};
}

}  // namespace plimsoll::cli
