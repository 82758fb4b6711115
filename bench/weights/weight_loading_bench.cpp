// How fast a file of weights comes into memory, beside the plainest way to do the same.
//
//   build/release/bin/weight_loading_bench model.safetensors [model.plim ...]
//
// warm     everything in the page cache
//   fresh    read into memory that nobody has touched yet, as an arena is: huge pages
//   read     read into memory that is there already
//   mapped   pages of the file laid over untouched memory (store/file_pages.h), without a copy
//   mmap     the whole file mapped with MAP_POPULATE, beside it
//   copy     memcpy of as many bytes, memory to memory
// cold     nothing in the page cache (posix_fadvise; needs a file system that heeds it)
//   read     as the loader finds best, with opening the file
//   O_DIRECT four threads that read blocks of 4 MiB, by turns with it: disks have their moods
//   ratio    the median over the turns of O_DIRECT's time by ours, the middle half, and all
// Both into memory that nobody has touched yet; who is first changes from turn to turn.
//
// Memory is taken and given back outside the time. Best of five; cold, medians of 15. "most" is the
// peak of resident memory above what the program had, for one read.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/base/clock.h"
#include "plimsoll/store/weights_file.h"

namespace {

using namespace plimsoll;

struct Memory {
  explicit Memory(std::size_t size)
      : bytes(static_cast<std::byte*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
              size) {
    ::madvise(bytes.data(), size, MADV_HUGEPAGE);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::munmap(bytes.data(), bytes.size()); }
  std::span<std::byte> bytes;
};

void drop_cache(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY);
  ::fdatasync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

void fill_cache(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(4 << 20);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size()))) {
  }
}

std::int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6);
  return 0;
}

// Every tensor to a place of its own, pages apart.
std::size_t places(const store::WeightsFile& file, std::vector<std::size_t>& out) {
  std::size_t at = 0;
  for (const auto& tensor : file.tensors()) {
    out.push_back(at);
    at += (tensor.bytes + 4095) / 4096 * 4096;
  }
  return at;
}

double read_all(const std::string& path, std::span<std::byte> memory, bool mapped) {
  const Stopwatch watch;
  const auto file = store::WeightsFile::open(path);
  if (!file) {
    fmt::print(stderr, "{}\n", file.error().message);
    std::exit(3);
  }
  std::vector<std::size_t> at;
  places(*file, at);
  std::vector<std::unique_ptr<store::FilePages>> laid;
  std::vector<store::WeightsFile::Wanted> wanted;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto& tensor = file->tensors()[i];
    const auto to = memory.subspan(at[i], tensor.bytes);
    if (mapped) {
      auto pages = file->lay_over(tensor, to);
      if (pages && *pages) {
        laid.push_back(std::move(*pages));
        continue;
      }
    }
    wanted.push_back({&tensor, to, false});
  }
  if (!file->read_all(wanted)) std::exit(3);
  return watch.seconds();
}

double map_whole(const std::string& path, std::size_t bytes) {
  const int file = ::open(path.c_str(), O_RDONLY);
  const Stopwatch watch;
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  const double seconds = watch.seconds();
  ::munmap(mapped, bytes);
  ::close(file);
  return seconds;
}

double read_direct(const std::string& path, std::span<std::byte> memory, std::size_t bytes) {
  constexpr std::size_t kBlock = 4 << 20;
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECT);
  if (file < 0) return 0;
  const Stopwatch watch;
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (std::size_t at = next++ * kBlock; at < bytes; at = next++ * kBlock)
          if (::pread(file, memory.data() + at, kBlock, static_cast<off_t>(at)) < 0) std::abort();
      });
  }
  ::close(file);
  return watch.seconds();
}

template <typename Work>
double best(Work work) {
  double out = 1e9;
  for (int i = 0; i < 5; ++i) out = std::min(out, work());
  return out;
}

void line(const char* what, std::size_t bytes, double seconds, const std::string& note = "") {
  fmt::print("  {:<16}{:>10.2f} ms{:>10.2f} GB/s  {}\n", what, 1e3 * seconds,
             seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0.0, note);
}

void measure_cold(const std::string& path, std::size_t room, std::size_t decoded,
                  std::size_t file_bytes) {
  constexpr int kTurns = 15;
  std::vector<double> ours;
  std::vector<double> plain;
  std::vector<double> ratios;
  for (int i = 0; i < 2 * kTurns; ++i) {
    drop_cache(path);
    const Memory fresh(room);
    if ((i + i / 2) % 2 == 0) {
      ours.push_back(read_all(path, fresh.bytes, false));
    } else {
      plain.push_back(read_direct(path, fresh.bytes, file_bytes));
    }
    if (ours.size() == plain.size()) ratios.push_back(plain.back() / ours.back());
  }
  std::sort(ours.begin(), ours.end());
  std::sort(plain.begin(), plain.end());
  std::sort(ratios.begin(), ratios.end());
  line("cold read", decoded, ours[kTurns / 2]);
  line("cold O_DIRECT", file_bytes, plain[kTurns / 2]);
  fmt::print("  {:<16}{:>10.2f} x   {:.2f} to {:.2f}, all {:.2f} to {:.2f}\n", "cold ratio",
             ratios[kTurns / 2], ratios[kTurns / 4], ratios[kTurns - 1 - kTurns / 4],
             ratios.front(), ratios.back());
}

struct Sizes {
  std::size_t room = 0;
  std::size_t decoded = 0;
  std::size_t in_file = 0;
};

Sizes measure_warm(const std::string& path) {
  const auto file = store::WeightsFile::open(path);
  if (!file) {
    fmt::print(stderr, "{}\n", file.error().message);
    std::exit(3);
  }
  std::vector<std::size_t> at;
  const std::size_t wanted = places(*file, at);
  const std::size_t decoded = wanted;
  const std::size_t room = std::max<std::size_t>(wanted, file->file_bytes()) + (8 << 20);
  fmt::print("{}: {}, {} tensors, {} bytes\n", path, file->format(), file->tensors().size(),
             file->file_bytes());
  fill_cache(path);
  const std::int64_t before = resident_kib();
  Memory memory(room);
  read_all(path, memory.bytes, false);
  const std::int64_t most = resident_kib() - before;
  std::memset(memory.bytes.data(), 1, room);
  line("warm fresh", decoded, best([&] {
         Memory fresh(room);
         return read_all(path, fresh.bytes, false);
       }));
  line("warm read", decoded, best([&] { return read_all(path, memory.bytes, false); }),
       fmt::format("most {} KiB beside a file of {}", most, file->file_bytes() / 1024));
  line("warm mapped", decoded, best([&] {
         Memory fresh(room);
         return read_all(path, fresh.bytes, true);
       }),
       fmt::format("{} bytes begin with pages", file->bytes_on_pages()));
  line("warm mmap", decoded, best([&] { return map_whole(path, file->file_bytes()); }));
  const Memory from(decoded);
  std::memset(from.bytes.data(), 2, decoded);
  line("copy", decoded, best([&] {
         const Stopwatch watch;
         std::memcpy(memory.bytes.data(), from.bytes.data(), decoded);
         return watch.seconds();
       }));
  return {room, decoded, file->file_bytes()};
}

// A mapping that somebody still has keeps its pages in the cache, so the warm one is gone by now.
void measure(const std::string& path) {
  const Sizes sizes = measure_warm(path);
  measure_cold(path, sizes.room, sizes.decoded, sizes.in_file);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) measure(argv[i]);
  return argc > 1 ? 0 : 2;
}
