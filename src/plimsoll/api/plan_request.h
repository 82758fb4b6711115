// What a user may say about planning, as texts: the options that all verbs which plan share.
//
// One struct, filled by one binder (cli/plan_options.h), understood in one place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/plan/fit/plan_options.h"

namespace plimsoll::api {

struct PlanRequest {
  std::string budget;
  std::string slowdown;    // "5%": the least memory for that much more time, instead of a budget
  std::string techniques;  // comma list of inplace, share, recompute, swap, encode, split, all
  std::string order = "natural";
  std::string placement;  // on a device with several memories; empty: search
  std::string deadline = "3s";
  std::string device = "cpu";
  std::string lossy;  // comma list of forms; kBareLossy: the option without one
  bool deterministic = false;
  bool two_ended = false;
  std::string bucket;
  std::vector<std::string> pinned;
  int streams = 1;
  int tune = 0;
  std::string swap_file;
};

// The device that is this machine, timed first.
inline constexpr std::string_view kMeasured = "measured";

// What `--lossy` without a list of forms is read as: fp16 for a model's activations and q8_0 for
// weights of a plain file, every lossy form that a DAG's file offers.
inline constexpr const char* kBareLossy = "default";
// Whether the text is a comma list of lossy forms.
bool is_lossy_list(const std::string& text);

// Called while a search runs: the seconds and bytes of the best plan so far.
using OnBetter = std::function<void(double seconds, Bytes peak)>;

Result<plan::PlanOptions> plan_options(const PlanRequest& request);

// The parts that a DAG's options have too. "inplace,share,recompute": the last three imply the
// first two.
Status read_techniques(std::string_view text, plan::PlanOptions& out);
// Those among them that free memory of a schedule, by name or as part of all.
Result<schedule::Remedies> remedies_in(std::string_view techniques);
// Whether one of them takes time, so that it is used only where memory is short.
Result<bool> give_up_time(std::string_view techniques);
Result<std::optional<double>> parse_slowdown(const PlanRequest& request);
Result<schedule::OrderChoice> parse_order(const std::string& text);

}  // namespace plimsoll::api
