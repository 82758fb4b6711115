// Binds the options that every verb which plans shares: --budget, --remedies, --order, --deadline, ...
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
  bool lossy = false;
  bool deterministic = false;
  bool two_ended = false;
  std::string bucket;
  std::vector<std::string> pinned;
  int streams = 1;
  int tune = 0;
  std::string swap_file;
};

void bind_plan_options(Command& command, PlanningTexts& texts);
Result<api::PlanOptions> plan_options(const PlanningTexts& texts);

}  // namespace plimsoll::cli
