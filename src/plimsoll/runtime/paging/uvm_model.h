// What managed memory would do with the same launches: a model, nothing is run.
//
// The driver sees pages of 2 MiB, not tensors. A page that a kernel touches and that is not on the
// device faults: the driver makes room if it has to, moves the page, and lets the kernel go on.
// It evicts in the order in which pages came, not in the order in which they were used, always
// writes back, and cannot know what is dead (research on the open kernel modules, 595.45; a fault
// takes 20 to 45 microseconds, of which 30 stand here).
//
//   seconds = compute + faults * 30 us + bytes in / rate + bytes out / rate
//
// Left out: prefetching of neighbours within a page (the page is the unit here), throttling of
// pages that come and go (which makes it slower), and overlap of faults with other thread blocks
// (faster). Take it for the shape of the curve.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/base/units.h"
#include "plimsoll/runtime/paging/pager.h"

namespace plimsoll::runtime {

struct UvmModelOptions {
  Bytes capacity;
  Bytes page = 2_MiB;
  double fault_seconds = 30e-6;
  double in_bytes_per_second = 10e9;
  double out_bytes_per_second = 10e9;
  double compute_seconds = 0;  // of a step when everything is there
};

struct UvmModelResult {
  Bytes in;
  Bytes out;
  std::int64_t faults = 0;
  double seconds = 0;
};

// A step after one that filled the pages.
UvmModelResult model_managed_memory(std::span<const VirtualLaunch> launches,
                                    const UvmModelOptions& options);

}  // namespace plimsoll::runtime
