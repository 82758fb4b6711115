// Sizes of the built-in models at which a step runs in a moment, all layers kept.
#pragma once

#include <string>

#include "plimsoll/model/sizes.h"

namespace plimsoll::api {

model::ModelOptions small_sizes(const std::string& model);

}  // namespace plimsoll::api
