// The profile of `--device cpu`: this machine's operators without timing them.
#pragma once

#include "plimsoll/api/model_options.h"

namespace plimsoll::api {

// For ModelRequest::machine_rates: kept in the user's cache folder, and measured at most once by
// this function and its copies (profile/machine_rates.h).
std::function<Result<schedule::DeviceProfile>(int threads)> rates_of_this_machine();

// The shipped profile, at the rates of the machine where the request knows them.
Result<schedule::DeviceProfile> profile_of_cpu(const ModelRequest& request);

}  // namespace plimsoll::api
