#include "plimsoll/cli/plan_options.h"

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/comma_list.h"

namespace plimsoll::cli {
namespace {

// "inplace,share,recompute": the last three imply the first two.
Status read_remedies(std::string_view text, api::PlanOptions& out) {
  out.in_place = out.share = false;
  out.remedies = {.recompute = false, .swap = false, .encode = false, .lossy = out.remedies.lossy};
  for (const std::string_view word : comma_list(text)) {
    const bool all = word == "all";
    if (word == "inplace") {
      out.in_place = true;
    } else if (word == "share") {
      out.share = true;
    } else if (all || word == "recompute" || word == "swap" || word == "encode") {
      out.in_place = out.share = true;
      out.remedies.recompute |= all || word == "recompute";
      out.remedies.swap |= all || word == "swap";
      out.remedies.encode |= all || word == "encode";
    } else {
      return fail(
          ErrorCode::kUsage,
          "remedy '{}': expects a comma list of inplace, share, recompute, swap, encode, all",
          word);
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> with_lossy_values(std::vector<std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") break;
    if (arguments[i] != "--lossy") continue;
    const bool forms = i + 1 < arguments.size() && schedule::parse_lossy_forms(arguments[i + 1]);
    arguments[i] = fmt::format("--lossy={}", forms ? arguments[i + 1] : kBareLossy);
    if (forms) arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  return arguments;
}

void bind_plan_options(Command& command, PlanningTexts& texts) {
  constexpr const char* kGroup = "Planning";
  command
      .add_option("--budget", texts.budget,
                  "bytes the run may use: 1.5GiB, 800MB, or 40% of keeping everything")
      .type_name("SIZE")
      .group(kGroup);
  command
      .add_option("--remedies", texts.remedies,
                  "comma list of inplace, share, recompute, swap, encode, all (default: recompute "
                  "with a budget)")
      .type_name("LIST")
      .group(kGroup);
  command
      .add_option("--lossy", texts.lossy,
                  "lossy encodings too, a comma list (alone: fp16); run says what each lost")
      .type_name("fp16|bf16|fp8|int8")
      .group(kGroup);
  command.add_option("--order", texts.order, "of the steps (default natural)")
      .type_name("natural|given|list|search")
      .group(kGroup);
  command.add_option("--deadline", texts.deadline, "how long to search (default 3s)")
      .type_name("TIME")
      .group(kGroup);
  command
      .add_flag("--deterministic", texts.deterministic,
                "count work instead of seconds; monotone in the budget")
      .group(kGroup);
  command
      .add_flag("--two-ended", texts.two_ended,
                "long-lived buffers at the front of the arena, the rest at the back")
      .group(kGroup);
  command
      .add_option("--bucket", texts.bucket,
                  "gradients side by side in buckets of this size, weights in one block: 25MiB")
      .type_name("SIZE")
      .group(kGroup);
  command
      .add_option("--pin", texts.pinned,
                  "a value, by name, that must still be there after the step; may be repeated")
      .type_name("NAME")
      .group(kGroup);
  command.add_option("--streams", texts.streams, "compute streams, 1 to 6 (default 1)")
      .between(1, 6)
      .group(kGroup);
  command
      .add_option("--device", texts.device,
                  "whose times and memory to plan for; measured: this machine, timed first "
                  "(default cpu; run --budget: measured)")
      .type_name("cpu|h200|measured|FILE")
      .group(kGroup);
  command
      .add_option(
          "--swap-file", texts.swap_file,
          "a folder, or a new file, on the disk that swapped values go to instead of host memory")
      .type_name("PATH")
      .group(kGroup);
  command
      .add_option("--tune", texts.tune,
                  "run this many plans for real, learn from their times and keep the fastest")
      .type_name("N")
      .between(0, 1000)
      .group(kGroup);
}

Result<api::PlanOptions> plan_options(const PlanningTexts& texts) {
  api::PlanOptions out;
  out.budget = texts.budget;
  out.two_ended = texts.two_ended;
  out.swaps_to_file = !texts.swap_file.empty();
  out.deterministic = texts.deterministic;
  if (!texts.remedies.empty()) PLIMSOLL_RETURN_IF_ERROR(read_remedies(texts.remedies, out));
  if (!texts.lossy.empty()) {
    PLIMSOLL_TRY(out.lossy,
                 schedule::parse_lossy_forms(texts.lossy == kBareLossy ? "fp16" : texts.lossy));
    out.remedies.lossy = true;
  }
  if (texts.order == "natural" || texts.order == "given") {
    out.order = schedule::OrderChoice::kGiven;
  } else if (texts.order == "list") {
    out.order = schedule::OrderChoice::kList;
  } else if (texts.order == "search") {
    out.order = schedule::OrderChoice::kSearch;
  } else {
    return fail(ErrorCode::kUsage, "order '{}': expects natural, given, list or search",
                texts.order);
  }
  if (!texts.bucket.empty()) {
    PLIMSOLL_TRY(out.bucket, parse_byte_size(texts.bucket));
  }
  out.pinned = texts.pinned;
  out.streams = texts.streams;
  PLIMSOLL_TRY(out.deadline_seconds, parse_seconds(texts.deadline));
  return out;
}

}  // namespace plimsoll::cli
