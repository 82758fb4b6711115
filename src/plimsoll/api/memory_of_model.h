// The memory report of a MODEL: its graph, and its graph at neighbouring sizes for the laws.
#pragma once

#include "plimsoll/api/memory_report.h"
#include "plimsoll/api/model_options.h"

namespace plimsoll::api {

Result<MemoryReport> memory_of_model(const ModelRequest& request);

}  // namespace plimsoll::api
