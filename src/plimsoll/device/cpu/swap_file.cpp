#include "plimsoll/device/cpu/swap_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/interval.h"

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

constexpr std::int64_t kBlock = 4096;
constexpr std::int64_t kBounce = 1 << 20;
constexpr std::int64_t kLeastDirect = 1 << 18;  // below it a call costs more than a copy

// Opened anew through its number, because it has no name any more.
int open_direct(int file) {
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  return ::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
}

// Calls transfer(address, bytes, offset in the file) until everything was moved.
template <typename Address, typename Transfer>
Status transfer_all(Address address, std::int64_t bytes, std::int64_t at, const char* what,
                    const Transfer& transfer) {
  while (bytes > 0) {
    const ssize_t done = transfer(address, static_cast<std::size_t>(bytes), at);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      return fail(ErrorCode::kDevice, "swap file: {} {} bytes failed: {}", what, bytes,
                  done == 0 ? "it ends too early" : std::strerror(errno));
    }
    address += done;
    bytes -= done;
    at += done;
  }
  return {};
}

bool is_aligned(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kBlock == 0;
}

// Blocks of another size than ours, or what is left behind a call that moved a part of a block.
bool wants_other_blocks(ssize_t done) {
  return done < 0 && errno == EINVAL;
}

// The whole blocks within [begin, end) of the file; empty where they are too few.
Interval<std::int64_t> whole_blocks(std::int64_t begin, std::int64_t end) {
  const std::int64_t first = (begin + kBlock - 1) / kBlock * kBlock;
  const std::int64_t last = end / kBlock * kBlock;
  if (last - first < kLeastDirect) return {begin, begin};
  return {first, last};
}

// Calls `direct` for pieces of whole blocks of the range, of at most a bounce buffer each, and
// `cached` for what lies beside them.
template <typename Cached, typename Direct>
Status by_blocks(Interval<std::int64_t> range, bool is_direct, const Cached& cached,
                 const Direct& direct) {
  const Interval<std::int64_t> blocks = whole_blocks(range.begin, range.end);
  if (!is_direct || blocks.empty()) return cached(range);
  PLIMSOLL_RETURN_IF_ERROR(cached(Interval<std::int64_t>{range.begin, blocks.begin}));
  for (std::int64_t from = blocks.begin; from < blocks.end; from += kBounce)
    PLIMSOLL_RETURN_IF_ERROR(
        direct(Interval<std::int64_t>{from, std::min(from + kBounce, blocks.end)}));
  return cached(Interval<std::int64_t>{blocks.end, range.end});
}

}  // namespace

struct SwapFile::Bounce {
  std::mutex busy;
  alignas(kBlock) std::array<std::byte, kBounce> bytes;
};

SwapFile::SwapFile() = default;

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
  out.direct_ = open_direct(out.file_);
  if (out.is_direct()) {
    out.writing_ = std::make_unique<Bounce>();
    out.reading_ = std::make_unique<Bounce>();
  }
  return out;
}

SwapFile::SwapFile(SwapFile&& other) noexcept {
  *this = std::move(other);
}

SwapFile& SwapFile::operator=(SwapFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(direct_, other.direct_);
  std::swap(writing_, other.writing_);
  std::swap(reading_, other.reading_);
  return *this;
}

SwapFile::~SwapFile() {
  if (direct_ >= 0) ::close(direct_);
  if (file_ >= 0) ::close(file_);
}

Status SwapFile::write(Offset at, std::span<const std::byte> bytes) const {
  const auto place_of = [&](std::int64_t from) { return bytes.data() + (from - at.value); };
  const auto write_to = [&](int file, const std::byte* from, Interval<std::int64_t> range) {
    return transfer_all(from, range.end - range.begin, range.begin, "writing",
                        [&](const std::byte* address, std::size_t size, std::int64_t offset) {
                          const ssize_t done = ::pwrite(file, address, size, offset);
                          return wants_other_blocks(done) ? ::pwrite(file_, address, size, offset)
                                                          : done;
                        });
  };
  return by_blocks(
      {at.value, at.value + std::ssize(bytes)}, is_direct(),
      [&](Interval<std::int64_t> range) { return write_to(file_, place_of(range.begin), range); },
      [&](Interval<std::int64_t> range) -> Status {
        const std::byte* const address = place_of(range.begin);
        if (is_aligned(address)) return write_to(direct_, address, range);
        const std::lock_guard lock(writing_->busy);
        std::memcpy(writing_->bytes.data(), address,
                    static_cast<std::size_t>(range.end - range.begin));
        return write_to(direct_, writing_->bytes.data(), range);
      });
}

Status SwapFile::read(Offset at, std::span<std::byte> bytes) const {
  const auto place_of = [&](std::int64_t from) { return bytes.data() + (from - at.value); };
  const auto read_from = [&](int file, std::byte* to, Interval<std::int64_t> range) {
    return transfer_all(to, range.end - range.begin, range.begin, "reading",
                        [&](std::byte* address, std::size_t size, std::int64_t offset) {
                          const ssize_t done = ::pread(file, address, size, offset);
                          return wants_other_blocks(done) ? ::pread(file_, address, size, offset)
                                                          : done;
                        });
  };
  return by_blocks(
      {at.value, at.value + std::ssize(bytes)}, is_direct(),
      [&](Interval<std::int64_t> range) { return read_from(file_, place_of(range.begin), range); },
      [&](Interval<std::int64_t> range) -> Status {
        std::byte* const address = place_of(range.begin);
        if (is_aligned(address)) return read_from(direct_, address, range);
        const std::lock_guard lock(reading_->busy);
        PLIMSOLL_RETURN_IF_ERROR(read_from(direct_, reading_->bytes.data(), range));
        std::memcpy(address, reading_->bytes.data(),
                    static_cast<std::size_t>(range.end - range.begin));
        return {};
      });
}

}  // namespace plimsoll::device
