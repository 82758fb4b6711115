// The seconds of operators on a device with memory of its own (measure_operators.h).
//
// One signature is ten runs as one sequence, over operands that move through a region larger than
// the caches. It is run twice before it is timed: the first run loads kernels, the second makes the
// graph. Floats are small positive numbers, everything else is zero.
#pragma once

#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/profile/measure_options.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::profile {

Status measure_on_device(const ir::Graph& graph, const MeasureOptions& options,
                         schedule::DeviceProfile& profile);

// What the device can do, as profile_machine.h says it of the CPU: arithmetic by products of 8192 x
// 8192, bandwidth, launches inside a sequence, copies from and to pinned memory, and encodings.
Result<schedule::DeviceProfile> profile_device(kernels::Backend& backend,
                                               const std::function<void(std::string_view)>& tell);

}  // namespace plimsoll::profile
