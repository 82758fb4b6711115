// Binds the options that every verb with a MODEL shares.
#pragma once

#include "plimsoll/api/model_options.h"
#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

// MODEL as the first positional (returned), then its options, into `request`, which must outlive
// the parsing.
Option bind_model_options(Command& command, api::ModelRequest& request);

// What a plan, a trace or a snapshot has decided is not decided again; only a model is planned.
// --batch and --seq may choose from a plan set.
Status refuse_words_beside_plan(const Command& command, const std::string& model);
// The same where none of several is a model, and none a plan set.
Status refuse_words_beside_plans(const Command& command, const std::vector<std::string>& subjects);

// For verbs that plan or run on a card.
void bind_tf32(Command& command, api::ModelRequest& request);

// For verbs that plan or run on a file of weights.
void bind_encoded_weights(Command& command, api::ModelRequest& request);

}  // namespace plimsoll::cli
