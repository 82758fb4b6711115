// Binds the options that every verb with a MODEL shares.
#pragma once

#include "plimsoll/api/model_options.h"
#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

// MODEL as the first positional (returned), then its options, into `request`, which must outlive
// the parsing.
Option bind_model_options(Command& command, api::ModelRequest& request);

// For verbs that plan or run on a card.
void bind_tf32(Command& command, api::ModelRequest& request);

// For verbs that plan or run on a file of weights.
void bind_encoded_weights(Command& command, api::ModelRequest& request);

}  // namespace plimsoll::cli
