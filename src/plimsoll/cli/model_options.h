// Binds the options that every verb with a MODEL shares.
#pragma once

#include <CLI/CLI.hpp>

#include "plimsoll/api/model_options.h"

namespace plimsoll::cli {

// MODEL as the first positional, then its options, into `request`, which must outlive the parsing.
void bind_model_options(CLI::App& command, api::ModelRequest& request);

}  // namespace plimsoll::cli
