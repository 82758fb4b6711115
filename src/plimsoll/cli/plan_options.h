// Binds the options that every verb which plans shares: --budget, --techniques, --order, ...
#pragma once

#include <string>
#include <vector>

#include "plimsoll/api/model_options.h"
#include "plimsoll/api/plan_request.h"
#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

// `--lossy MODEL` takes no value and `--lossy int8 MODEL` does; CLI11 cannot tell, so arguments are
// made plain before it reads them: `--lossy` is followed by forms or becomes --lossy=default.
std::vector<std::string> with_lossy_values(std::vector<std::string> arguments);

// Into `request`, which must outlive the parsing. Plans of `model` are made with the rates of this
// machine, but for deterministic ones. Without `has_limit` techniques that give up time are refused
// where no option limits the memory.
void bind_plan_options(Command& command, api::PlanRequest& request, api::ModelRequest& model,
                       bool has_limit = false);

}  // namespace plimsoll::cli
