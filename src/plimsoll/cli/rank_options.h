// The options of several ranks, which `run` and `plan` share.
#pragma once

#include "plimsoll/api/ranks.h"
#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

void bind_rank_options(Command& command, api::RankRequest& ranks, const char* what);
// `plan` only: what lies between ranks that are not there.
void bind_link(Command& command, api::RankRequest& ranks);

}  // namespace plimsoll::cli
