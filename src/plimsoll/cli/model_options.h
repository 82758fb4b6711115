// Binds the options that every verb with a MODEL shares.
#pragma once

#include <CLI/CLI.hpp>

#include "plimsoll/api/model_options.h"

namespace plimsoll::cli {

// MODEL as the first positional (returned), then its options, into `request`, which must outlive
// the parsing.
CLI::Option* bind_model_options(CLI::App& command, api::ModelRequest& request);

}  // namespace plimsoll::cli
