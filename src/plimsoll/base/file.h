// Files: read whole or mapped here, written by output_file.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "plimsoll/base/output_file.h"
#include "plimsoll/base/result.h"

namespace plimsoll {

// A read-only mapping of a whole file. Move-only; the bytes stay valid as long as it lives. A file
// that another process truncates while it is mapped raises SIGBUS on access, as with any mapping.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Gives the pages of a part of the bytes back to the system; bytes elsewhere are none of its
  // business. They stay valid: reading them again brings the pages back from the file.
  void release(std::span<const std::byte> part) const;
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

Result<std::string> read_file(const std::filesystem::path& path);

}  // namespace plimsoll
