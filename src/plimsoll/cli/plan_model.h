// The part of the verb `plan` that takes a model.
#pragma once

#include <string>

#include "plimsoll/api/planning.h"
#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

struct PlanModelOptions {
  api::PlanJob job;
  std::string sizes;  // a plan set: batch=1..64
  bool json = false;
  bool explain = false;
  bool sweep = false;
  bool max_batch = false;
  bool figure = false;
  double slower_percent = 30;  // what the figure allows
};

Status plan_model(PlanModelOptions options, Command& command);

}  // namespace plimsoll::cli
