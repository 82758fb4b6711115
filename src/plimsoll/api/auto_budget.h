// `--budget auto`: as much as the device has free, less a margin.
//
// On the CPU it is what the system says may be taken (device/cpu/free_memory.h); on a card what its
// driver says is free once the program has its context there; of a profile that only plans it is
// the memory of that device. The margin is for what no plan sees: the program itself, its
// libraries, and neighbours that grow.
#pragma once

#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::api {

inline constexpr double kMemoryMargin = 0.1;

struct AutoBudget {
  Bytes bytes;
  std::string reason;  // "20.11 GiB: 22.34 GiB free (MemAvailable of this machine) less 10 %"
};

// kDevice where nobody says what is free, kUsage for a profile without a size.
Result<AutoBudget> auto_budget(const std::string& device);

}  // namespace plimsoll::api
