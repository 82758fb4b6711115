#include "plimsoll/store/part_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace plimsoll::store {
namespace {

constexpr std::size_t kReadBlock = 4 << 20;
constexpr std::size_t kReadAlignment = 4096;
constexpr int kReadThreads = 4;
// Direct reads have more threads than keep a disk busy: while some copy blocks to their place or
// compare them with their checksums, others read, also on a machine with other work. Twelve blocks
// of 2 MiB took 0.86 of the time of six of 4 MiB, with as much memory.
constexpr std::size_t kDirectBlock = 2 << 20;
constexpr int kDirectThreads = 12;
constexpr std::size_t kMostTargets = 1024;  // of one read, for Linux
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

// Pages of a part of a file that are in the page cache. cachestat() looks at those that are there;
// mincore() at each that could be, which of a cold file takes a twentieth of the time to read it.
// Nothing: the kernel (before 6.5) or the file's owner does not tell.
std::optional<std::uint64_t> cached_pages(int descriptor, std::uint64_t offset,
                                          std::uint64_t bytes) {
  constexpr long kCachestat = 451;
  struct {
    std::uint64_t offset;
    std::uint64_t length;
  } range{offset, bytes};
  struct {
    std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (::syscall(kCachestat, descriptor, &range, &found, 0U) != 0) return std::nullopt;
  return found.cached;
}
// The same by mincore(); all of them where that does not tell.
std::uint64_t resident_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped.data()) / page * page;
  const std::size_t length =
      reinterpret_cast<std::uintptr_t>(mapped.data()) + mapped.size() - begin;
  std::vector<unsigned char> pages((length + page - 1) / page);
  if (::mincore(reinterpret_cast<void*>(begin), length, pages.data()) != 0) return pages.size();
  return static_cast<std::uint64_t>(std::count_if(
      pages.begin(), pages.end(), [](unsigned char flags) { return (flags & 1) != 0; }));
}

// Memory for blocks.
class BlockMemory {
 public:
  explicit BlockMemory(std::size_t bytes) : mapped_(bytes + kHugePage) {
    void* memory =
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = memory;
    void* begin = memory;
    std::size_t space = mapped_;
    std::align(kHugePage, bytes, begin, space);
    bytes_ = {static_cast<std::byte*>(begin), bytes};
  }
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;
  ~BlockMemory() {
    if (memory_ != nullptr) ::munmap(memory_, mapped_);
  }
  std::span<std::byte> bytes() const { return bytes_; }  // none: there is no memory
  // As arenas have: a block of small ones is many short pieces to a disk, which then reads at half
  // its speed. Of no use where only ends of parts are read here, for the kernel clears them whole.
  void use_huge_pages() const { ::madvise(bytes_.data(), bytes_.size(), MADV_HUGEPAGE); }

 private:
  static constexpr std::size_t kHugePage = 2 << 20;
  std::size_t mapped_;
  void* memory_ = nullptr;
  std::span<std::byte> bytes_;
};

// Below, blocks are too small for a disk.
constexpr std::size_t kLeastStaging = 1 << 20;
// Larger blocks are worth more than more of them.
constexpr std::size_t kGoodBlock = 1 << 20;

// A block for each thread in memory of the caller's: at multiples of the alignment.
struct Blocks {
  std::byte* first = nullptr;
  std::size_t bytes = 0;
  int threads = 0;
};
Blocks blocks_in(std::span<std::byte> staging) {
  void* begin = staging.data();
  std::size_t space = staging.size();
  if (std::align(kReadAlignment, kLeastStaging, begin, space) == nullptr) return {};
  const int threads =
      std::clamp(static_cast<int>(std::min(space, kDirectThreads * kGoodBlock) / kGoodBlock),
                 kReadThreads, kDirectThreads);
  const std::size_t each =
      space / static_cast<std::size_t>(threads) / kReadAlignment * kReadAlignment;
  return {static_cast<std::byte*>(begin), std::min(each, kDirectBlock), threads};
}

using ReadCached = std::function<Status(std::uint64_t, std::span<std::byte>)>;

// The blocks of a file that parts of it lie in, each read once and copied to the parts that it has
// something of.
class BlockQueue {
 public:
  BlockQueue(std::span<const PartReader::Part> parts, const PartReader::Done& done,
             std::size_t block_bytes)
      : parts_(parts), done_(done), block_bytes_(block_bytes) {
    std::size_t pieces = 0;
    for (const auto& part : parts) {
      first_pieces_.push_back(pieces);
      pieces += pieces_of(part);
    }
    left_ = std::vector<std::atomic<std::size_t>>(pieces);
    there_.reserve(pieces);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].out.empty()) continue;
      for (std::size_t piece = 0; piece < pieces_of(parts[i]); ++piece)
        left_[first_pieces_[i] + piece] = piece_bytes(parts[i], piece);
      const std::uint64_t end = parts[i].offset + parts[i].out.size();
      for (std::uint64_t at = parts[i].offset / block_bytes; at * block_bytes < end; ++at)
        uses_.push_back({at, i});
    }
    std::sort(uses_.begin(), uses_.end());
    for (std::size_t i = 0; i < uses_.size(); ++i)
      if (i == 0 || uses_[i].first != uses_[i - 1].first) first_uses_.push_back(i);
  }

  // What each thread does: with O_DIRECT and a buffer of its own, or through the page cache. What a
  // direct read leaves undone (the end of a file is no whole block) is read through the cache too.
  void work_directly(int descriptor, std::byte* buffer, const ReadCached& cached) {
    for (auto uses = take(); !uses.empty(); uses = take()) {
      if (read_straight(descriptor, uses, buffer)) continue;
      const auto [begin, end] = wanted(uses);
      const ssize_t got = ::pread(descriptor, buffer, end - begin, static_cast<off_t>(begin));
      for (const auto& [block, part] : uses) {
        const auto [offset, to] = of_block(block, part);
        const bool there =
            got >= 0 && begin + static_cast<std::uint64_t>(got) >= offset + to.size();
        if (there) std::memcpy(to.data(), buffer + (offset - begin), to.size());
        arrived(part, offset, to.size(), there ? Status() : cached(offset, to));
      }
    }
  }
  void work_cached(const ReadCached& cached) {
    for (auto uses = take(); !uses.empty(); uses = take()) {
      for (const auto& [block, part] : uses) {
        const auto [offset, to] = of_block(block, part);
        arrived(part, offset, to.size(), cached(offset, to));
      }
    }
  }
  std::size_t blocks() const { return first_uses_.size(); }
  // Whether a block is read to a buffer as a whole.
  bool copies_blocks() const {
    for (std::size_t group = 0; group < blocks(); ++group)
      if (straight_extents(uses_of(group)).empty()) return true;
    return false;
  }
  // After all threads; parts of no bytes are in no block.
  Status result() {
    for (std::size_t i = 0; i < parts_.size() && !failed_; ++i)
      if (parts_[i].out.empty()) finish({i, 0});
    return std::move(status_);
  }

 private:
  using Use = std::pair<std::uint64_t, std::size_t>;  // block, part
  struct Extent {
    std::uint64_t offset = 0;  // in the file
    std::span<std::byte> to;
    std::size_t part = 0;
  };
  struct Piece {
    std::size_t part = 0;
    std::size_t piece = 0;
  };

  // The uses of the next block; none: all are taken, or one failed.
  std::span<const Use> take() {
    const std::size_t group = next_++;
    if (failed_ || group >= first_uses_.size()) return {};
    return uses_of(group);
  }
  std::span<const Use> uses_of(std::size_t group) const {
    const std::size_t last = group + 1 < first_uses_.size() ? first_uses_[group + 1] : uses_.size();
    return std::span(uses_).subspan(first_uses_[group], last - first_uses_[group]);
  }
  // What each part has of a block, by places in the file; none: they share pages, or do not begin
  // one.
  std::vector<Extent> straight_extents(std::span<const Use> uses) const {
    if (uses.size() > kMostTargets / 3) return {};
    std::vector<Extent> out;
    for (const auto& [block, part] : uses) {
      const auto [offset, to] = of_block(block, part);
      if (offset % kReadAlignment != 0 ||
          reinterpret_cast<std::uintptr_t>(to.data()) % kReadAlignment != 0)
        return {};
      out.push_back({offset, to, part});
    }
    std::sort(out.begin(), out.end(),
              [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
    for (std::size_t i = 1; i < out.size(); ++i)
      if (out[i].offset < out[i - 1].offset + out[i - 1].to.size()) return {};
    return out;
  }
  // Pages of a block that are one part's, and begin a page in its memory, are read to their place;
  // only pages at the ends of parts and between them go through the buffer, each to where it would
  // be if the whole block did. (Where a part's memory begins elsewhere, some disks refuse, and
  // others are slower than with a copy.)
  bool read_straight(int descriptor, std::span<const Use> uses, std::byte* buffer) {
    const std::vector<Extent> extents = straight_extents(uses);
    if (extents.empty()) return false;
    const std::uint64_t begin = extents.front().offset;
    std::vector<iovec> targets;
    std::uint64_t at = begin;
    const auto target = [&](void* to, std::uint64_t bytes) {
      if (bytes > 0) targets.push_back({to, bytes});
      at += bytes;
    };
    for (const Extent& extent : extents) {
      target(buffer + (at - begin), extent.offset - at);
      target(extent.to.data(), extent.to.size() / kReadAlignment * kReadAlignment);
      if (extent.to.size() % kReadAlignment != 0) target(buffer + (at - begin), kReadAlignment);
    }
    const ssize_t got = ::preadv(descriptor, targets.data(), static_cast<int>(targets.size()),
                                 static_cast<off_t>(begin));
    const Extent& last = extents.back();
    if (got < 0 || begin + static_cast<std::uint64_t>(got) < last.offset + last.to.size())
      return false;
    for (const Extent& extent : extents) {
      const std::size_t whole = extent.to.size() / kReadAlignment * kReadAlignment;
      std::memcpy(extent.to.data() + whole, buffer + (extent.offset + whole - begin),
                  extent.to.size() - whole);
      arrived(extent.part, extent.offset, extent.to.size(), {});
    }
    return true;
  }
  // Bytes of a part, from this place of the file on.
  void arrived(std::size_t part, std::uint64_t offset, std::size_t bytes, Status read) {
    if (!read) return fail(std::move(read));
    const PartReader::Part& whole = parts_[part];
    const std::size_t in_piece = whole.piece > 0 ? whole.piece : whole.out.size();
    std::size_t at = offset - whole.offset;
    const std::size_t end = at + bytes;
    while (at < end) {
      const std::size_t piece = at / in_piece;
      const std::size_t taken = std::min(end, (piece + 1) * in_piece) - at;
      if (left_[first_pieces_[part] + piece].fetch_sub(taken) == taken) finish({part, piece});
      at += taken;
    }
  }
  static std::size_t pieces_of(const PartReader::Part& part) {
    return part.piece == 0 || part.out.empty() ? 1 : (part.out.size() - 1) / part.piece + 1;
  }
  static std::size_t piece_bytes(const PartReader::Part& part, std::size_t piece) {
    if (part.piece == 0) return part.out.size();
    return std::min(part.piece, part.out.size() - piece * part.piece);
  }

  // What of a block is a part's: where in the file, and where to.
  std::pair<std::uint64_t, std::span<std::byte>> of_block(std::uint64_t block,
                                                          std::size_t part) const {
    const auto& [offset, out, piece] = parts_[part];
    const std::uint64_t first = std::max(block * block_bytes_, offset);
    const std::uint64_t last = std::min((block + 1) * block_bytes_, offset + out.size());
    return {first, out.subspan(first - offset, last - first)};
  }
  // The aligned bytes that the uses of one block want.
  std::pair<std::uint64_t, std::uint64_t> wanted(std::span<const Use> uses) const {
    std::uint64_t begin = (uses[0].first + 1) * block_bytes_;
    std::uint64_t end = 0;
    for (const auto& [block, part] : uses) {
      const auto [offset, to] = of_block(block, part);
      begin = std::min(begin, offset / kReadAlignment * kReadAlignment);
      end = std::max(end, offset + to.size());
    }
    return {begin, (end + kReadAlignment - 1) / kReadAlignment * kReadAlignment};
  }
  // Of whole parts one call of `done` at a time, and no thread waits for another's: whoever is at
  // it takes what arrives meanwhile too. Pieces are told by whoever read their last byte: as much
  // as all buffers hold may arrive together at the end, and wait for one thread to check it.
  void finish(Piece piece) {
    if (parts_[piece.part].piece > 0) {
      Status made = done_(piece.part, piece.piece);
      if (!made) fail(std::move(made));
      return;
    }
    std::unique_lock lock(mutex_);
    there_.push_back(piece);
    if (finishing_) return;
    finishing_ = true;
    while (!there_.empty() && !failed_) {
      const Piece next = there_.back();
      there_.pop_back();
      lock.unlock();
      Status made = done_(next.part, next.piece);
      if (!made) fail(std::move(made));
      lock.lock();
    }
    finishing_ = false;
  }
  void fail(Status why) {
    const std::lock_guard lock(mutex_);
    if (!failed_) status_ = std::move(why);
    failed_ = true;
  }

  std::span<const PartReader::Part> parts_;
  const PartReader::Done& done_;
  std::size_t block_bytes_;
  std::vector<std::size_t> first_pieces_;       // of each part, among those of all
  std::vector<std::atomic<std::size_t>> left_;  // of each piece: bytes that are not there yet
  std::vector<Use> uses_;                       // by block
  std::vector<std::size_t> first_uses_;         // of each block
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::vector<Piece> there_;  // read, and `done` not called yet
  bool finishing_ = false;    // somebody calls it
  Status status_;
};

// `work` with the numbers of so many threads, this one among them.
void on_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::jthread> threads;
  for (int i = 1; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  work(0);
}

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

ReadMethod PartReader::method_for(std::uint64_t offset, std::span<const std::byte> mapped,
                                  std::uint64_t together) const {
  if (network_) return ReadMethod::kNetwork;
  if (direct_ < 0 || mapped.empty() || together < kSmallPart) return ReadMethod::kCached;
  const std::uint64_t pages = (mapped.size() + kReadAlignment - 1) / kReadAlignment;
  const auto resident = cached_pages(cached_, offset, mapped.size());
  return (resident ? *resident : resident_pages(mapped)) * 2 >= pages ? ReadMethod::kCached
                                                                      : ReadMethod::kDirect;
}

Status PartReader::read(std::uint64_t offset, std::span<std::byte> out, ReadMethod method,
                        const Staging& staging) const {
  if (method != ReadMethod::kDirect && out.size() < kSmallPart) return read_cached(offset, out);
  const Part part{offset, out};
  return read_all(
      {&part, 1}, method, [](std::size_t, std::size_t) { return Status(); }, staging);
}

void PartReader::expect(std::uint64_t offset, std::uint64_t bytes) const {
  static_cast<void>(::posix_fadvise(cached_, static_cast<off_t>(offset), static_cast<off_t>(bytes),
                                    POSIX_FADV_WILLNEED));
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

Status PartReader::read_all(std::span<const Part> parts, ReadMethod method, const Done& done,
                            const Staging& staging) const {
  const bool direct = method == ReadMethod::kDirect && direct_ >= 0;
  std::optional<BlockMemory> own;
  if (direct && !staging) own.emplace(kDirectThreads * kDirectBlock);
  Blocks blocks;
  if (direct) blocks = blocks_in(own ? own->bytes() : *staging);
  BlockQueue queue(parts, done, blocks.bytes > 0 ? blocks.bytes : kReadBlock);
  if (own && queue.copies_blocks()) own->use_huge_pages();
  const auto cached = [this](std::uint64_t offset, std::span<std::byte> out) {
    return read_cached(offset, out);
  };
  if (blocks.bytes > 0) {
    const auto most = static_cast<int>(std::min<std::size_t>(queue.blocks(), kDirectThreads));
    on_threads(std::clamp(most, 1, blocks.threads), [&](int thread) {
      queue.work_directly(direct_, blocks.first + static_cast<std::size_t>(thread) * blocks.bytes,
                          cached);
    });
  } else {
    // Copying takes a core; threads pay from a few blocks on.
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    const int most = static_cast<int>(std::min<std::size_t>(queue.blocks() / 2, kReadThreads));
    on_threads(std::max(1, std::min(cores, most)), [&](int) { queue.work_cached(cached); });
  }
  return queue.result();
}

}  // namespace plimsoll::store
