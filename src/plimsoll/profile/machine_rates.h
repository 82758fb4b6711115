// The rates of the machine at hand, so that a plan's seconds are those of this machine without
// timing every operator.
//
// A shipped profile knows which share of the roofline each operator reaches; that share carries
// over from machine to machine far better than seconds do. So what is measured here is the roof
// alone: arithmetic, memory, caches, launches, copies, encodings (profile_machine.h, quick).
//
//   shipped `cpu2`   fp32 219 GFLOP/s, memory 36 GB/s   conv reaches 0.99 of the roofline
//   this machine     fp32 458 GFLOP/s, memory 88 GB/s   conv at 0.99 of 458 GFLOP/s
//
// Rates are kept in a file for an hour, one for each kind of processor, instruction set, kernel
// library and number of threads, so that plans do not change from call to call: a machine that
// others share may be half as fast later. What was measured while our threads had to wait for a
// core says little of the machine: it is not kept, and kept rates of any age are taken instead.
// The file is a profile like any other; one that cannot be read is measured again, and where
// nothing can be written nothing is kept.
#pragma once

#include <filesystem>

#include "plimsoll/base/result.h"
#include "plimsoll/profile/profile_machine.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::profile {

struct RatesOptions {
  int threads = 0;
  std::filesystem::path folder;  // where they are kept; empty: nowhere
};

// $XDG_CACHE_HOME/plimsoll, or .cache/plimsoll in $HOME; empty without either.
std::filesystem::path rates_folder();
std::filesystem::path rates_file(const RatesOptions& options);

// Kept ones where they are fresh, else measured now and kept.
Result<schedule::DeviceProfile> machine_rates(const RatesOptions& options);
// A whole profile, whose rates are kept like those above: not where others had the cores, which its
// note says then.
Result<schedule::DeviceProfile> profile_and_keep(const ProfileOptions& how,
                                                 const std::filesystem::path& folder);
void keep_rates(const RatesOptions& options, const schedule::DeviceProfile& rates);

// The operators of one profile at the rates of another. Dtypes without a rate keep their ratio to
// fp32; the disk stays as it was.
schedule::DeviceProfile at_rates(schedule::DeviceProfile operators,
                                 const schedule::DeviceProfile& rates);

}  // namespace plimsoll::profile
