// The CPU as a device: everything happens on the host, at once.
//
// A sequence of one stream runs on the caller's thread; every other stream has a thread of its own
// for as long as the sequence runs. A stream counts the commands it has done, and whoever waits for
// a command of it waits for the counter. A failure stops all streams where they are.
//
// Cost: two atomic stores a command; a thread for every stream beyond the first, every time.
#pragma once

#include <memory>

#include "plimsoll/device/device.h"

namespace plimsoll::device {

std::unique_ptr<Device> make_cpu_device();

}  // namespace plimsoll::device
