#include "plimsoll/store/data_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::store {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(-1); }
  void reset(int number) {
    if (number_ >= 0) ::close(number_);
    number_ = number;
  }
  int get() const { return number_; }

 private:
  int number_;
};

// The parts of a path below the folder, or why it is none.
Result<std::vector<std::string>> parts_of(std::string_view name) {
  if (name.empty()) return bad_input("external data has no file name");
  if (name.size() > 4096 || name.find('\0') != std::string_view::npos) {
    return bad_input("external data has an impossible file name");
  }
  if (name.front() == '/')
    return bad_input("external data '{}': an absolute path is refused", name);
  std::vector<std::string> parts;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..")
      return bad_input("external data: a path with '..' leads out of the model's folder");
    parts.emplace_back(part);
  }
  if (parts.empty()) return bad_input("external data has no file name");
  return parts;
}

}  // namespace

Result<const MappedFile*> DataFolder::map(std::string_view name) {
  if (const auto place = files_.find(name); place != files_.end()) return &place->second;
  PLIMSOLL_TRY(const auto parts, parts_of(name));
  const std::string folder = folder_.empty() ? "." : folder_.string();
  Descriptor at(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return bad_input("{}: {}", folder, std::strerror(errno));
  const int no_follow = follow_links_ ? 0 : O_NOFOLLOW;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int kind = i + 1 < parts.size() ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK;
    const int next = ::openat(at.get(), parts[i].c_str(), kind | no_follow | O_CLOEXEC);
    if (next < 0) {
      const bool link = errno == ELOOP || (errno == ENOTDIR && !follow_links_);
      return bad_input(
          "external data '{}': {}", name,
          link ? "a symbolic link or no folder on the way; links are not followed unless allowed"
               : std::strerror(errno));
    }
    at.reset(next);
  }
  struct stat info {};
  if (::fstat(at.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return bad_input("external data '{}': not a regular file", name);
  }
  // Through the descriptor: what was checked is what is mapped.
  auto file = MappedFile::open(fmt::format("/proc/self/fd/{}", at.get()));
  if (!file) return forward(file, fmt::format("external data '{}'", name));
  return &files_.emplace(std::string(name), std::move(*file)).first->second;
}

Result<std::span<const std::byte>> DataFolder::open(std::string_view name, std::int64_t offset,
                                                    std::optional<std::int64_t> length) {
  PLIMSOLL_TRY(const MappedFile* file, map(name));
  const auto size = static_cast<std::int64_t>(file->bytes().size());
  const std::int64_t wanted =
      length.value_or(std::max<std::int64_t>(size - std::max<std::int64_t>(offset, 0), 0));
  if (offset < 0 || wanted < 0 || offset > size || wanted > size - offset) {
    return bad_input("external data '{}': has {} bytes, {} from {} are asked for", name, size,
                     wanted, offset);
  }
  return file->bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(wanted));
}

void DataFolder::release(std::span<const std::byte> part) const {
  for (const auto& [name, file] : files_) file.release(part);
}

}  // namespace plimsoll::store
