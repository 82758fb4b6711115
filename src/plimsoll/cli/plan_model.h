// The part of the verb `plan` that takes a model.
#pragma once

#include "plimsoll/api/model_options.h"
#include "plimsoll/cli/plan_options.h"

namespace plimsoll::cli {

struct PlanModelOptions {
  api::ModelRequest request;
  PlanningTexts planning;
  std::string output;
  std::string sizes;  // a plan set: batch=1..64
  bool json = false;
  bool explain = false;
  bool sweep = false;
  bool max_batch = false;
  bool figure = false;
  double slower_percent = 30;  // what the figure allows
  std::string strategy;
};

Status plan_model(const PlanModelOptions& options);

}  // namespace plimsoll::cli
