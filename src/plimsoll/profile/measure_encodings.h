// The rates of encodings on a device with memory of its own: a half-zero activation of 64 MiB into
// its compressed buffer and out again, by every codec of floats.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::profile {

// `latency`: of a kernel inside a sequence.
Result<schedule::CodecRates> measure_encodings(kernels::Backend& backend, double latency);

}  // namespace plimsoll::profile
