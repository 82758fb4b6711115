// The directory of a zip archive: which members there are, and where their bytes lie.
//
// Sizes of 32 or 64 bits (zip64). Hostile like any file: members lie inside it and no two share a
// byte, there are at most 2^20, none is encrypted. What is in a member, and whether it is deflated,
// is the caller's business (npz.h, torch_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"

namespace plimsoll::store {

struct ZipMember {
  std::string_view name;     // in the file
  std::uint64_t method = 0;  // 0: stored, 8: deflated
  std::uint64_t packed = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  // of its local header
  std::uint32_t checksum = 0;
  std::span<const std::byte> packed_bytes;  // once located
};

// `what` for the message: "an npz file".
Result<std::vector<ZipMember>> read_zip_directory(std::span<const std::byte> file,
                                                  std::string_view what);
// Finds the bytes of each.
Status locate_zip_members(std::span<const std::byte> file, std::span<ZipMember> members);

}  // namespace plimsoll::store
