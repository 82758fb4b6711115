#include "plimsoll/device/cpu/touched_bytes.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace plimsoll::device {
namespace {

// Linux 6.7, newer than the headers of the systems we build on.
constexpr std::uint64_t kWriteProtectUnpopulated = std::uint64_t{1} << 13;
constexpr std::uint64_t kWriteProtectAsync = std::uint64_t{1} << 15;
constexpr int kUserModeOnly = 1;  // all that a process without rights is given, and all this needs
constexpr std::uint64_t kPageIsWritten = 1 << 1;

struct PageRegion {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};

struct PagemapScan {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t regions;
  std::uint64_t region_count;
  std::uint64_t max_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);

// The pages that hold any byte of it. A neighbour's bytes in the first page may be watched too;
// they lie below.
uffdio_range pages_of(std::span<const std::byte> memory) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uint64_t>(memory.data()) / page * page;
  const auto end = reinterpret_cast<std::uint64_t>(memory.data() + memory.size());
  return {begin, (end - begin + page - 1) / page * page};
}

struct File {
  int descriptor = -1;
  ~File() {
    if (descriptor >= 0) ::close(descriptor);
  }
  int release() { return std::exchange(descriptor, -1); }
};

// What the system said is left in errno.
bool protect_writes(int faults, const uffdio_range& range) {
  uffdio_api handshake{};
  handshake.api = UFFD_API;
  handshake.features = kWriteProtectAsync | kWriteProtectUnpopulated;
  uffdio_register registration{};
  registration.range = range;
  registration.mode = UFFDIO_REGISTER_MODE_WP;
  uffdio_writeprotect protection{};
  protection.range = range;
  protection.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  return ::ioctl(faults, UFFDIO_API, &handshake) == 0 &&
         ::ioctl(faults, UFFDIO_REGISTER, &registration) == 0 &&
         ::ioctl(faults, UFFDIO_WRITEPROTECT, &protection) == 0;
}

// The end of the highest written page, 0 for none; less than 0: errno says why not.
std::int64_t end_of_written(int pagemap, const uffdio_range& range) {
  std::array<PageRegion, 64> regions;
  std::uint64_t highest = 0;
  for (std::uint64_t at = range.start; at < range.start + range.len;) {
    PagemapScan scan{};
    scan.size = sizeof scan;
    scan.start = at;
    scan.end = range.start + range.len;
    scan.regions = reinterpret_cast<std::uint64_t>(regions.data());
    scan.region_count = regions.size();
    scan.category_mask = scan.return_mask = kPageIsWritten;
    const int found = ::ioctl(pagemap, kPagemapScan, &scan);
    if (found < 0) return -1;
    if (found > 0) highest = regions[static_cast<std::size_t>(found) - 1].end;
    if (scan.walk_end <= at) break;
    at = scan.walk_end;
  }
  return static_cast<std::int64_t>(highest);
}

}  // namespace

bool TouchedBytes::can_watch_pages() {
  // On the heap it would be a part of somebody's page; a page of one's own is what an arena has.
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  bool works = false;
  {
    const auto watch = watch_pages({static_cast<std::byte*>(memory), page});
    if (watch) {
      *static_cast<volatile std::byte*>(memory) = std::byte{1};
      const auto highest = watch->highest();
      works = highest && highest->value == static_cast<std::int64_t>(page);
    }
  }
  ::munmap(memory, page);
  return works;
}

Result<TouchedBytes> TouchedBytes::watch_pages(std::span<std::byte> memory) {
  TouchedBytes out(memory, Method::kPages);
  if (memory.empty()) return out;
  File faults{static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly))};
  File pagemap{::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
  if (faults.descriptor < 0 || pagemap.descriptor < 0 ||
      !protect_writes(faults.descriptor, pages_of(memory))) {
    return fail(ErrorCode::kDevice, "the written pages of an arena cannot be watched here: {}",
                std::strerror(errno));
  }
  out.faults_ = faults.release();
  out.pagemap_ = pagemap.release();
  return out;
}

TouchedBytes TouchedBytes::watch_pattern(std::span<std::byte> memory, std::byte pattern) {
  TouchedBytes out(memory, Method::kPattern);
  out.pattern_ = pattern;
  std::fill(memory.begin(), memory.end(), pattern);
  return out;
}

TouchedBytes::TouchedBytes(TouchedBytes&& other) noexcept
    : memory_(other.memory_),
      method_(other.method_),
      pattern_(other.pattern_),
      faults_(std::exchange(other.faults_, -1)),
      pagemap_(std::exchange(other.pagemap_, -1)) {}

TouchedBytes::~TouchedBytes() {
  if (faults_ >= 0) ::close(faults_);
  if (pagemap_ >= 0) ::close(pagemap_);
}

Result<Bytes> TouchedBytes::highest() const {
  if (memory_.empty()) return Bytes(0);
  if (method_ == Method::kPages) return highest_page();
  const auto last = std::find_if(memory_.rbegin(), memory_.rend(),
                                 [this](std::byte byte) { return byte != pattern_; });
  return Bytes(memory_.rend() - last);
}

Result<Bytes> TouchedBytes::highest_page() const {
  const std::int64_t end = end_of_written(pagemap_, pages_of(memory_));
  if (end < 0)
    return fail(ErrorCode::kDevice, "the written pages of an arena cannot be read: {}",
                std::strerror(errno));
  const std::int64_t begin = reinterpret_cast<std::int64_t>(memory_.data());
  return Bytes(std::clamp<std::int64_t>(end - begin, 0, static_cast<std::int64_t>(memory_.size())));
}

}  // namespace plimsoll::device
