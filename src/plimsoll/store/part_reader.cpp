#include "plimsoll/store/part_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace plimsoll::store {
namespace {

constexpr std::size_t kReadBlock = 4 << 20;
constexpr std::size_t kReadAlignment = 4096;
constexpr int kReadThreads = 4;
// Threads and buffers pay from here on.
constexpr std::size_t kSmallPart = 8 << 20;

bool is_network(int descriptor) {
  struct statfs info {};
  if (::fstatfs(descriptor, &info) != 0) return false;
  constexpr long kSmb2 = 0xfe534d42;
  constexpr long kCifs = 0xff534d42;
  constexpr long kFuse = 0x65735546;
  constexpr long kNfs = 0x6969;
  constexpr long kCeph = 0x00c36400;
  constexpr long kLustre = 0x0bd00bd0;
  const auto kind = static_cast<long>(static_cast<unsigned long>(info.f_type) & 0xffffffffUL);
  return kind == kSmb2 || kind == kCifs || kind == kFuse || kind == kNfs || kind == kCeph ||
         kind == kLustre;
}

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};

}  // namespace

std::string_view name(ReadMethod method) {
  switch (method) {
    case ReadMethod::kCached:
      return "cached";
    case ReadMethod::kDirect:
      return "direct";
    case ReadMethod::kNetwork:
      return "network";
    case ReadMethod::kMapped:
      return "mapped";
  }
  return "";
}

std::optional<ReadMethod> parse_read_method(std::string_view text) {
  for (const ReadMethod method :
       {ReadMethod::kCached, ReadMethod::kDirect, ReadMethod::kNetwork, ReadMethod::kMapped})
    if (text == name(method)) return method;
  return std::nullopt;
}

Result<PartReader> PartReader::open(const std::filesystem::path& path) {
  PartReader out;
  out.path_ = path;
  out.cached_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (out.cached_ < 0) return bad_input("{}: {}", path.string(), std::strerror(errno));
  out.network_ = is_network(out.cached_);
  if (!out.network_) out.direct_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  return out;
}

PartReader::PartReader(PartReader&& other) noexcept
    : path_(std::move(other.path_)),
      cached_(std::exchange(other.cached_, -1)),
      direct_(std::exchange(other.direct_, -1)),
      network_(other.network_) {}
PartReader& PartReader::operator=(PartReader&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(cached_, other.cached_);
  std::swap(direct_, other.direct_);
  std::swap(network_, other.network_);
  return *this;
}
PartReader::~PartReader() {
  if (cached_ >= 0) ::close(cached_);
  if (direct_ >= 0) ::close(direct_);
}

ReadMethod PartReader::method_for(std::span<const std::byte> mapped) const {
  if (network_) return ReadMethod::kNetwork;
  if (direct_ < 0 || mapped.size() < kSmallPart) return ReadMethod::kCached;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data()) / page * page;
  const std::size_t length =
      reinterpret_cast<std::uintptr_t>(mapped.data()) + mapped.size() - begin;
  std::vector<unsigned char> pages((length + page - 1) / page);
  if (::mincore(reinterpret_cast<void*>(begin), length, pages.data()) != 0)
    return ReadMethod::kCached;
  const auto resident = std::count_if(pages.begin(), pages.end(),
                                      [](unsigned char flags) { return (flags & 1) != 0; });
  return static_cast<std::size_t>(resident) * 2 >= pages.size() ? ReadMethod::kCached
                                                                : ReadMethod::kDirect;
}

Status PartReader::read(std::uint64_t offset, std::span<std::byte> out, ReadMethod method) const {
  return method == ReadMethod::kDirect && direct_ >= 0 ? read_direct(offset, out)
                                                       : read_cached(offset, out);
}

Result<std::unique_ptr<FilePages>> PartReader::lay(std::uint64_t offset,
                                                   std::span<std::byte> out) const {
  auto pages = FilePages::lay(cached_, offset, out);
  if (!pages) return forward(pages, path_.string());
  if (!*pages) return std::unique_ptr<FilePages>();
  const auto before = static_cast<std::size_t>((*pages)->pages().data() - out.data());
  const std::size_t behind = before + (*pages)->pages().size();
  PLIMSOLL_RETURN_IF_ERROR(read_cached(offset, out.first(before)));
  PLIMSOLL_RETURN_IF_ERROR(read_cached(offset + behind, out.subspan(behind)));
  return std::move(*pages);
}

Status PartReader::read_cached(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got =
        ::pread(cached_, out.data(), std::min(out.size(), kReadBlock), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad_input("{}: cannot read: {}", path_.string(), std::strerror(errno));
    if (got == 0)
      return bad_input("{}: it became shorter while it was read; is somebody writing it?",
                       path_.string());
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

// Blocks at multiples of their size; the first and the last are needed in part only. What a direct
// read leaves undone (the end of a file is no whole block) is read the other way.
Status PartReader::read_direct(std::uint64_t offset, std::span<std::byte> out) const {
  const std::uint64_t end = offset + out.size();
  std::atomic<std::uint64_t> next = offset / kReadBlock;
  std::atomic<bool> failed = false;
  std::vector<Status> status(kReadThreads);
  const auto work = [&](Status& done) {
    const std::unique_ptr<std::byte, FreeMemory> buffer(
        static_cast<std::byte*>(std::aligned_alloc(kReadAlignment, kReadBlock)));
    while (!failed) {
      const std::uint64_t block = next++ * kReadBlock;
      if (block >= end) return;
      const std::uint64_t first = std::max(block, offset);
      const std::uint64_t last = std::min(block + kReadBlock, end);
      const auto to = out.subspan(first - offset, last - first);
      const ssize_t got =
          buffer ? ::pread(direct_, buffer.get(), kReadBlock, static_cast<off_t>(block)) : -1;
      if (got >= 0 && block + static_cast<std::uint64_t>(got) >= last) {
        std::memcpy(to.data(), buffer.get() + (first - block), to.size());
        continue;
      }
      done = read_cached(first, to);
      if (!done) failed = true;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < kReadThreads; ++i)
      threads.emplace_back([&work, &status, i] { work(status[static_cast<std::size_t>(i)]); });
    work(status[0]);
  }
  for (const Status& one : status)
    if (!one) return forward(one);
  return {};
}

}  // namespace plimsoll::store
