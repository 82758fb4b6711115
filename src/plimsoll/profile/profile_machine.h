// What this machine can do, measured: the numbers of a DeviceProfile.
//
//   memory       physical, as the system says
//   arithmetic   a product of 512 x 512 matrices in each dtype that has a kernel for it
//   bandwidth    a sum of two tensors of 64 MiB, bytes read and written
//   launch       a sum of two tensors of 16 numbers
//   copies       64 MiB to other memory and back on a thread of their own, as swapping does; 4 KiB
//                for the latency
//   copy tax     a product with and without a copying thread beside it
//   disk         the same to a file without a name in `folder`
//   codecs       a half-zero map of 64 MiB into its box and out again; lossy forms a fifth of it
//
// The fastest of several runs: what else the machine does should not count. About two seconds, more
// on a slow disk, and a quick one half a second. Times of single operators come from
// measure_operators.h.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::profile {

struct ProfileOptions {
  int threads = 0;
  std::filesystem::path folder = std::filesystem::temp_directory_path();  // on the disk to measure
  bool quick = false;  // without disk, copy tax and lossy codecs
  std::function<void(std::string_view what)> on_progress;  // before each part
};

// The disk alone: to a swap file in this folder and back.
Result<schedule::CopyRates> measure_disk(const std::filesystem::path& folder);

Result<schedule::DeviceProfile> profile_machine(const ProfileOptions& options);

}  // namespace plimsoll::profile
