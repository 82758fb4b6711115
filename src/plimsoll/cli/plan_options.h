// Binds the options that every verb which plans shares: --budget, --remedies, --order, --deadline,
// ...
#pragma once

#include "plimsoll/api/planning.h"
#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

struct PlanningTexts {
  std::string budget;
  std::string remedies;
  std::string order = "natural";
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

// What `--lossy` without a list of forms is read as: fp16 for a model, every lossy form that a
// DAG's file offers.
inline constexpr const char* kBareLossy = "default";
// `--lossy MODEL` takes no value and `--lossy int8 MODEL` does; CLI11 cannot tell, so arguments are
// made plain before it reads them: `--lossy` is followed by forms or becomes --lossy=default.
std::vector<std::string> with_lossy_values(std::vector<std::string> arguments);

void bind_plan_options(Command& command, PlanningTexts& texts);
Result<api::PlanOptions> plan_options(const PlanningTexts& texts);

}  // namespace plimsoll::cli
