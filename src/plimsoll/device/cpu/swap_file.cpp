#include "plimsoll/device/cpu/swap_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "plimsoll/base/byte_size.h"

namespace plimsoll::device {
namespace {

// A file without a name; -1 with errno set.
int open_nameless(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) ::unlink(path.c_str());
    return file;
  }
  const int file = ::open(path.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string name = (path / "plimsoll-swap-XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

Result<SwapFile> SwapFile::make(const std::filesystem::path& path, Bytes bytes) {
  SwapFile out;
  out.file_ = open_nameless(path);
  if (out.file_ < 0) {
    return fail(ErrorCode::kUsage,
                "swap file '{}': {}; name a folder, or a file that does not exist yet",
                path.string(), std::strerror(errno));
  }
  if (bytes.value == 0) return out;
  if (const int error = ::posix_fallocate(out.file_, 0, bytes.value); error != 0) {
    return fail(ErrorCode::kDevice, "swap file '{}': no space for {}: {}", path.string(),
                human(bytes), std::strerror(error));
  }
  return out;
}

SwapFile::SwapFile(SwapFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

SwapFile& SwapFile::operator=(SwapFile&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}

SwapFile::~SwapFile() {
  if (file_ >= 0) ::close(file_);
}

Status SwapFile::write(Offset at, std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file_, bytes.data(), bytes.size(), at.value);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0)
      return fail(ErrorCode::kDevice, "swap file: writing {} bytes failed: {}", bytes.size(),
                  std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    at = at + Bytes(done);
  }
  return {};
}

Status SwapFile::read(Offset at, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t done = ::pread(file_, bytes.data(), bytes.size(), at.value);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return fail(ErrorCode::kDevice, "swap file: reading {} bytes failed: {}", bytes.size(),
                  done == 0 ? "it ends too early" : std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    at = at + Bytes(done);
  }
  return {};
}

}  // namespace plimsoll::device
