// DeviceProfile: what a device can do, as data. The cost model of planning.
//
// The time of an operator is the one measured for its signature where there is one, else the
// roofline:
//
//   seconds = launch + max(operations / rate of its dtype, bytes moved / memory rate) / efficiency
//
// Bytes that fit the cache move at its rate: what one operator of a small step wrote, the next
// finds there. The efficiency is the share of the roofline that the operator's kernel reaches, by
// operator; convolutions in groups have kernels of their own and so efficiencies (`cost_class`).
// One where nothing is said.
//
//   conv2d 3x3 64->64 on 32x56x56, fp32, 2-core CPU: 7.4e9 operations / 220e9 per second = 34 ms;
//   its 51 MB of traffic at 18 GB/s would take 3 ms, so arithmetic decides.
//
// A device may have memories that are nearer to its operators than device memory (`memories`): a
// scratchpad, an on-chip SRAM. The bytes that an operator reads or writes there take the time of
// that memory (`CostParts::with_memory`).
//
// A profile is JSON so that one machine can plan for another; `cpu2`, `h200` and three devices with
// several memories ship with the program. Where each number of theirs was measured stands in
// `note`. Reading is strict: rates are positive and finite, and anything else is an error that
// names the key.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/schedule/link.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

// Bytes of one operator that come from a cache, and their rate; no bytes where there is none.
struct CacheRate {
  Bytes bytes;
  double bytes_per_second = 1;

  bool operator==(const CacheRate&) const = default;
};

// A memory beside device memory that operators read and write directly.
struct MemoryLevel {
  std::string name;
  Bytes bytes;
  double read_bytes_per_second = 1;  // by operators
  double write_bytes_per_second = 1;
  CopyRates copies;  // "in" is from device memory, "out" is to it

  bool operator==(const MemoryLevel&) const = default;
};
inline constexpr std::size_t kMostMemoryLevels = 4;

// What one kernel takes beside its operands (ops/kernel_facts.h).
struct KernelNeed {
  Bytes scratch;
  bool in_place = true;
  std::string engine = {};

  bool operator==(const KernelNeed&) const = default;
};

// The card that a profile was measured on: what a machine without it must know to plan for it.
struct ProfiledCard {
  std::string instruction_set;  // "sm_90 tf32"
  std::string library;          // "cuDNN 9.19.0, cuBLASLt 13.1.0"
  // By operator signature; one that was measured and is not here takes nothing.
  std::map<std::string, KernelNeed> kernels;

  bool operator==(const ProfiledCard&) const = default;
};

struct DeviceProfile {
  std::string name;
  std::string note;
  Bytes memory_bytes;
  std::map<std::string, double> operations_per_second;  // by dtype: "fp32", "bf16", ...
  double memory_bytes_per_second = 1;
  CacheRate cache;
  double launch_seconds = 0;
  std::map<std::string, double> efficiency;  // by cost class, else by operator
  CopyRates copies;                          // to and from host memory
  CopyRates disk;                            // to and from a swap file
  double copy_tax = 0;  // seconds that computing loses for a second of copying beside it
  CodecRates codecs;    // encodings of activations: sparse, and other forms where known
  Link link;            // between ranks
  std::map<std::string, double> measured;  // seconds by operator signature
  std::optional<ProfiledCard> card;        // where it is one
  std::vector<MemoryLevel> memories;       // the fastest first
  bool read_only = false;  // device memory holds weights and inputs, and nothing is written to it

  bool operator==(const DeviceProfile&) const = default;
};

struct Cost {
  double seconds = 0;
  bool measured = false;  // else estimated
};

// What has an efficiency of its own: the operator, but of a convolution (or a gradient of one)
// "conv.depthwise" where every channel is a group, "conv.narrow" in groups of less than 16
// channels, and "conv.groups" of more; groups of a multiple of 16 are as good as none.
std::string cost_class(std::string_view signature);

// A signature begins with its operator: "conv(...)". An unknown dtype costs as much as fp32.
Cost cost_of(const DeviceProfile& profile, std::string_view signature, std::string_view dtype,
             double operations, double bytes_moved);

// The parts of the roofline of one operator, to be put together again for other memories.
struct CostParts {
  double launch_seconds = 0;
  double arithmetic_seconds = 0;
  double bytes_moved = 0;  // of all inputs and outputs
  double efficiency = 1;
  double seconds = 0;  // with everything in device memory; measured, or the roofline

  // `memory_seconds` of reading and writing those bytes where they lie, `home_seconds` in device
  // memory. A measured time changes in proportion.
  double with_memory(double memory_seconds, double home_seconds) const;
};
CostParts cost_parts(const DeviceProfile& profile, std::string_view signature,
                     std::string_view dtype, double operations, double bytes_moved);

std::string to_json(const DeviceProfile& profile);
Result<DeviceProfile> read_profile(std::string_view text);

// "cpu2" (also "cpu"), "h200", "microcontroller", "accelerator", "gpu-l2"; nothing for other names.
const DeviceProfile* shipped_profile(std::string_view name);
std::vector<std::string> shipped_profile_names();

}  // namespace plimsoll::schedule
