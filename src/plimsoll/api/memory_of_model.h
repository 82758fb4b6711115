// The memory report of a MODEL: its graph, and its graph at neighbouring sizes for the laws.
#pragma once

#include "plimsoll/api/model_options.h"
#include "plimsoll/report/memory_laws.h"

namespace plimsoll::api {

Result<report::MemoryReport> memory_of_model(const ModelRequest& request);

}  // namespace plimsoll::api
