// How much memory a new program may take on this machine: the least of
//   MemAvailable   of /proc/meminfo: what the kernel can give without swapping;
//   every limit    of the control groups that this process is in, from its own up to the root, less
//                  what the group has in use (files that can be dropped again do not count). Both
//                  versions of control groups; in a container the process often sees only the last
//                  part of its path, so folders that are not there are passed over.
//
//   meminfo 21 GiB, group limit 8 GiB with 1.5 GiB in use  =>  6.5 GiB, "the limit of its control
//   group"
//
// It is a reading of one moment: nobody reserves what it says.
#pragma once

#include <filesystem>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::device {

struct FreeMemory {
  Bytes bytes;
  std::string source;  // what decided, in words
};

// `root` is where /proc and /sys stand: tests bring their own. kDevice where the system says
// nothing.
Result<FreeMemory> free_memory(const std::filesystem::path& root = "/");

}  // namespace plimsoll::device
