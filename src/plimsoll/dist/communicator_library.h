// What libplimsoll_mpi.so and libplimsoll_nccl.so say to the program: two functions each, found by
// name. Both sides are built from the same sources; a library of another build is refused in words.
#pragma once

#include <cstdint>

#include "plimsoll/base/random.h"
#include "plimsoll/dist/open_communicator.h"

namespace plimsoll::dist {

inline constexpr const char* kMpiBuild = "plimsoll_mpi_build";
inline constexpr const char* kMpiOpen = "plimsoll_mpi_open";
inline constexpr const char* kNcclBuild = "plimsoll_nccl_build";
inline constexpr const char* kNcclOpen = "plimsoll_nccl_open";
using LibraryBuild = std::uint64_t (*)();
using Opened = Result<std::shared_ptr<Communicator>>;
using MpiOpen = void (*)(const MpiOptions& options, Opened& out);
using NcclOpen = void (*)(const std::shared_ptr<Communicator>& host, int card, Opened& out);

constexpr std::uint64_t communicator_library_build() {
  std::uint64_t out = 1;  // grows with this interface
  for (const std::size_t size : {sizeof(Communicator), sizeof(MpiOptions), sizeof(Error)})
    out = mix64(out + size);
  return out;
}

}  // namespace plimsoll::dist
