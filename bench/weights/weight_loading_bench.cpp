// How fast a file of weights comes into memory, beside the plainest way to do the same.
//
//   build/release/bin/weight_loading_bench model.safetensors [model.plim ...]
//
// warm     everything in the page cache
//   read     pread into memory that is there already
//   mapped   pages of the file laid over that memory (store/file_pages.h), without a copy
//   copy     memcpy of as many bytes, memory to memory
// cold     nothing in the page cache (posix_fadvise; needs a file system that heeds it)
//   read     as the loader finds best
//   O_DIRECT four threads that read blocks of 4 MiB, beside it
//
// Memory is taken, touched and given back outside the time. Best of five. "most" is the peak of
// resident memory above what the program had, for one read.
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
              size) {}
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
    if (!file->read_into(tensor, to)) std::exit(3);
  }
  return watch.seconds();
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

void measure(const std::string& path) {
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
  const std::int64_t before = resident_kib();
  Memory memory(room);
  read_all(path, memory.bytes, false);
  const std::int64_t most = resident_kib() - before;
  std::memset(memory.bytes.data(), 1, room);
  line("warm read", decoded, best([&] { return read_all(path, memory.bytes, false); }),
       fmt::format("most {} KiB beside a file of {}", most, file->file_bytes() / 1024));
  line("warm mapped", decoded, best([&] { return read_all(path, memory.bytes, true); }),
       fmt::format("{} bytes begin with pages", file->bytes_on_pages()));
  std::memset(memory.bytes.data(), 1, room);
  const Memory from(decoded);
  std::memset(from.bytes.data(), 2, decoded);
  line("copy", decoded, best([&] {
         const Stopwatch watch;
         std::memcpy(memory.bytes.data(), from.bytes.data(), decoded);
         return watch.seconds();
       }));
  line("cold read", decoded, best([&] {
         drop_cache(path);
         return read_all(path, memory.bytes, false);
       }));
  line("cold O_DIRECT", file->file_bytes(), best([&] {
         drop_cache(path);
         return read_direct(path, memory.bytes, file->file_bytes());
       }));
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) measure(argv[i]);
  return argc > 1 ? 0 : 2;
}
