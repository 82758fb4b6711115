// What the way between device and host memory carries: out, in, and both ways at once.
//
// Copies of 64 MiB between device memory and host memory as steps copy (pinned on a card), on
// streams of their own; the best of three. No program that moves so many bytes is faster than this
// allows.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/device/device.h"

namespace plimsoll::profile {

struct BusRates {
  double out_bytes_per_second = 0;
  double in_bytes_per_second = 0;
  double both_bytes_per_second = 0;  // the sum of both ways

  // The least time for these bytes.
  double seconds(Bytes out, Bytes in) const;
};

Result<BusRates> measure_bus(device::Device& device, Bytes bytes = 64_MiB);

}  // namespace plimsoll::profile
