// DeviceProfile: what a device can do, as data. The cost model of planning.
//
// The time of an operator is the one measured for its signature where there is one, else the
// roofline:
//
//   seconds = launch + max(operations / rate of its dtype, bytes moved / memory rate) / efficiency
//
// The efficiency is the share of the roofline that the operator's kernel reaches, by operator.
// One where nothing is said.
//
//   conv2d 3x3 64->64 on 32x56x56, fp32, 2-core CPU: 7.4e9 operations / 220e9 per second = 34 ms;
//   its 51 MB of traffic at 18 GB/s would take 3 ms, so arithmetic decides.
//
// A profile is JSON so that one machine can plan for another; `cpu2` and `h200` ship with the
// program. Where each number of theirs was measured stands in `note`. Reading is strict: rates are
// positive and finite, and anything else is an error that names the key.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/schedule/link.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct DeviceProfile {
  std::string name;
  std::string note;
  Bytes memory_bytes;
  std::map<std::string, double> operations_per_second;  // by dtype: "fp32", "bf16", ...
  double memory_bytes_per_second = 1;
  double launch_seconds = 0;
  std::map<std::string, double> efficiency;  // by operator
  CopyRates copies;                          // to and from host memory
  CopyRates disk;                            // to and from a swap file
  double copy_tax = 0;  // seconds that computing loses for a second of copying beside it
  CodecRates codecs;    // encodings of activations: sparse, and other forms where known
  Link link;            // between ranks
  std::map<std::string, double> measured;  // seconds by operator signature

  bool operator==(const DeviceProfile&) const = default;
};

struct Cost {
  double seconds = 0;
  bool measured = false;  // else estimated
};

// A signature begins with its operator: "conv(...)". An unknown dtype costs as much as fp32.
Cost cost_of(const DeviceProfile& profile, std::string_view signature, std::string_view dtype,
             double operations, double bytes_moved);

std::string to_json(const DeviceProfile& profile);
Result<DeviceProfile> read_profile(std::string_view text);

// "cpu2" (also "cpu") and "h200"; nothing for other names.
const DeviceProfile* shipped_profile(std::string_view name);
std::vector<std::string> shipped_profile_names();

}  // namespace plimsoll::schedule
