#include "plimsoll/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace plimsoll {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return bad_input("{}: {}", path.string(), std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0)
    return bad_input("{}: {}", path.string(), std::strerror(errno));
  if (S_ISDIR(info.st_mode)) return bad_input("{}: is a folder, expected a file", path.string());
  if (!S_ISREG(info.st_mode)) return bad_input("{}: not a regular file", path.string());
  MappedFile out;
  out.size_ = static_cast<std::size_t>(info.st_size);
  if (out.size_ == 0) return out;
  void* data = ::mmap(nullptr, out.size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED)
    return bad_input("{}: cannot map: {}", path.string(), std::strerror(errno));
  out.data_ = static_cast<const std::byte*>(data);
  return out;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto from = reinterpret_cast<std::uintptr_t>(part.data());
  const auto begin = reinterpret_cast<std::uintptr_t>(data_);
  if (from < begin || from - begin > size_ || part.size() > size_ - (from - begin)) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t first = from / page * page;
  ::madvise(reinterpret_cast<void*>(first), from + part.size() - first, MADV_DONTNEED);
}

Result<std::string> read_file(const std::filesystem::path& path) {
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(path));
  return std::string(file.text());
}

}  // namespace plimsoll
