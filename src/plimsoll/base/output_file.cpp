#include "plimsoll/base/output_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "plimsoll/base/byte_size.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel

// What a name leads to. `error` is an errno, and then the rest means nothing.
struct Destination {
  int error = 0;
  int descriptor = -1;  // the name stands for one of ours: /dev/stdout, /dev/fd/3
  bool through = false;
  bool exists = false;
  fs::path path;
  struct stat info {};
};

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// -1: not such a name. Opening "/dev/fd/3" again would begin at the front of a file that a shell
// appends to.
int descriptor_named(const std::string& name) {
  if (name == "/dev/stdout") return STDOUT_FILENO;
  if (name == "/dev/stderr") return STDERR_FILENO;
  for (const std::string& folder : {std::string("/dev/fd/"), std::string("/proc/self/fd/"),
                                    fmt::format("/proc/{}/fd/", ::getpid())}) {
    if (!name.starts_with(folder)) continue;
    int out = -1;
    const auto [end, problem] =
        std::from_chars(name.data() + folder.size(), name.data() + name.size(), out);
    if (problem == std::errc() && end == name.data() + name.size() && out >= 0) return out;
  }
  return -1;
}

// The links of /proc are no paths: "pipe:[1234]", or a file that has been removed.
bool lies_in_proc(const fs::path& link) {
  struct statfs system {};
  return ::statfs(folder_of(link).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// The rule of fs.protected_symlinks: we read links ourselves, so the kernel does not apply it for
// us.
bool is_strangers_link(const fs::path& link, const struct stat& info) {
  struct stat folder {};
  if (::stat(folder_of(link).c_str(), &folder) != 0) return true;
  const bool open_to_all = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return open_to_all && info.st_uid != ::geteuid() && info.st_uid != folder.st_uid;
}

Destination find_destination(fs::path path) {
  Destination out;
  for (int links = 0; links <= kMostLinks; ++links) {
    out.path = path;
    out.descriptor = descriptor_named(path.string());
    if (out.descriptor >= 0) return out;
    out.exists = ::lstat(path.c_str(), &out.info) == 0;
    if (!out.exists) {
      if (errno != ENOENT || path.empty() || !path.has_filename())
        out.error = errno == ENOENT ? EISDIR : errno;
      return out;
    }
    if (!S_ISLNK(out.info.st_mode)) {
      if (S_ISDIR(out.info.st_mode)) out.error = EISDIR;
      out.through = !S_ISREG(out.info.st_mode);
      if (out.error == 0 && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
        out.error = errno;
      return out;
    }
    if (lies_in_proc(path)) {
      out.through = true;
      return out;
    }
    if (is_strangers_link(path, out.info)) {
      out.error = EACCES;
      return out;
    }
    std::error_code problem;
    const fs::path to = fs::read_symlink(path, problem);
    if (problem) {
      out.error = problem.value();
      return out;
    }
    path = folder_of(path) / to;
  }
  out.error = ELOOP;
  return out;
}

tl::unexpected<Error> cannot_write(const fs::path& path, int error) {
  return bad_input("{}: cannot write: {}", path.string(), std::strerror(error));
}

std::string temporary_for(const fs::path& target) {
  std::random_device random;
  const auto number = static_cast<std::uint64_t>(random()) << 32 | random();
  const std::string name =
      fmt::format(".{}.{:016x}.part", target.filename().string().substr(0, 200), number);
  return fs::absolute(folder_of(target) / name).string();
}

int sync(int descriptor) {
  if (::fsync(descriptor) == 0) return 0;
  // a pipe has nothing to sync
  return errno == EINVAL || errno == ENOTSUP || errno == EROFS ? 0 : errno;
}

// The names are given already: a folder that cannot be synced is no reason to call the files
// unwritten.
void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// As the old file was. Whoever may not give the file to its old owner must not pass on the right to
// run as him either.
int take_over(int descriptor, const struct stat& old) {
  mode_t mode = old.st_mode & 07777;
  if (::fchown(descriptor, old.st_uid, old.st_gid) != 0) mode &= 0777;
  return ::fchmod(descriptor, mode) == 0 ? 0 : errno;
}

}  // namespace

Result<OutputFile> OutputFile::create(const fs::path& path) {
  const Destination to = find_destination(path);
  if (to.error != 0) return cannot_write(path, to.error);
  OutputFile out;
  out.asked_ = path;
  if (to.descriptor >= 0 || to.through) {
    out.descriptor_ = to.descriptor >= 0 ? ::fcntl(to.descriptor, F_DUPFD_CLOEXEC, 3)
                                         : ::open(to.path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (out.descriptor_ < 0) return cannot_write(path, errno);
    // what was printed before comes before
    if (to.descriptor == STDOUT_FILENO) std::fflush(stdout);
    return out;
  }
  out.target_ = to.path;
  out.temporary_ = TemporaryName(temporary_for(to.path));
  // A file that is to be private is so from its first byte.
  out.descriptor_ =
      ::open(out.temporary_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
             to.exists ? 0600 : 0666);
  if (out.descriptor_ < 0) {
    const int error = errno;
    out.temporary_.forget();
    return cannot_write(path, error);
  }
  if (!to.exists) return out;
  if (const int error = take_over(out.descriptor_, to.info); error != 0)
    return cannot_write(path, error);
  return out;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : asked_(std::move(other.asked_)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      written_(other.written_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(asked_, other.asked_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(written_, other.written_);
  return *this;
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

tl::unexpected<Error> OutputFile::failure(int error) const {
  return cannot_write(asked_, error);
}

Status OutputFile::write(std::string_view bytes) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // write() takes 2 GiB at most
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failure(errno);
    bytes.remove_prefix(static_cast<std::size_t>(done));
    written_ += static_cast<std::uint64_t>(done);
  }
  return {};
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  return write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// Every byte is on its way and every late error known; the name is not given yet.
Status OutputFile::finish() {
  if (descriptor_ < 0) return {};
  const int synced = sync(descriptor_);
  const int closed = ::close(std::exchange(descriptor_, -1)) == 0 ? 0 : errno;
  if (synced != 0) return failure(synced);
  if (closed != 0 && closed != EINTR) return failure(closed);
  return {};
}

Status OutputFile::give_name() {
  if (target_.empty()) return {};
  if (::rename(temporary_.path().c_str(), target_.c_str()) != 0) return failure(errno);
  temporary_.forget();
  return {};
}

Status OutputFile::commit() {
  return commit_together({this, 1});
}

namespace {

// The renames of a set so far, so that they can be undone.
class Renames {
 public:
  // The old file gets a temporary name, and loses it with this value.
  int set_aside(const fs::path& target) {
    struct stat info {};
    if (::lstat(target.c_str(), &info) != 0) return errno == ENOENT ? 0 : errno;
    // it came while we wrote
    if (!S_ISREG(info.st_mode)) return S_ISDIR(info.st_mode) ? EISDIR : EEXIST;
    TemporaryName aside(temporary_for(target));
    if (::rename(target.c_str(), aside.path().c_str()) != 0) {
      const int error = errno;
      aside.forget();
      return error;
    }
    old_.push_back({target, std::move(aside)});
    return 0;
  }
  void named(const fs::path& target) { new_.push_back(target); }
  void undo() {
    for (const fs::path& target : new_) ::unlink(target.c_str());
    for (auto& [target, aside] : old_) {
      if (::rename(aside.path().c_str(), target.c_str()) == 0) aside.forget();
    }
  }

 private:
  std::vector<std::pair<fs::path, TemporaryName>> old_;
  std::vector<fs::path> new_;
};

}  // namespace

Status commit_together(std::span<OutputFile> files) {
  if (files.empty()) return {};
  for (OutputFile& file : files) PLIMSOLL_RETURN_IF_ERROR(file.finish());
  if (files.size() == 1) {
    PLIMSOLL_RETURN_IF_ERROR(files[0].give_name());
    if (!files[0].target_.empty()) sync_folder(folder_of(files[0].target_));
    return {};
  }
  const SignalsWait wait;
  Renames renames;
  const auto place = [&](OutputFile& file) -> Status {
    if (file.target_.empty()) return {};
    if (const int error = renames.set_aside(file.target_); error != 0) return file.failure(error);
    PLIMSOLL_RETURN_IF_ERROR(file.give_name());
    renames.named(file.target_);
    return {};
  };
  const OutputFile& index = files.back();
  Status done;
  if (const int error = index.target_.empty() ? 0 : renames.set_aside(index.target_); error != 0)
    done = index.failure(error);
  for (std::size_t i = 0; done && i < files.size(); ++i) done = place(files[i]);
  if (!done) renames.undo();
  fs::path synced;
  for (const OutputFile& file : files) {
    if (file.target_.empty() || folder_of(file.target_) == synced) continue;
    synced = folder_of(file.target_);
    sync_folder(synced);
  }
  return done;
}

Status write_file(const fs::path& path, std::string_view content) {
  PLIMSOLL_TRY(OutputFile file, OutputFile::create(path));
  PLIMSOLL_RETURN_IF_ERROR(file.write(content));
  return file.commit();
}

Status check_writable(const fs::path& path, std::uint64_t bytes) {
  const Destination to = find_destination(path);
  if (to.error != 0) return cannot_write(path, to.error);
  if (to.descriptor >= 0)
    return ::fcntl(to.descriptor, F_GETFD) < 0 ? Status(cannot_write(path, errno)) : Status{};
  if (to.through) return {};
  PLIMSOLL_RETURN_IF_ERROR(OutputFile::create(path));
  struct statvfs system {};
  if (bytes == 0 || ::statvfs(folder_of(to.path).c_str(), &system) != 0 || system.f_blocks == 0)
    return {};
  const std::uint64_t room = std::uint64_t{system.f_bavail} * system.f_frsize;
  if (bytes <= room) return {};
  return bad_input("{}: cannot write: it will have {}, and its file system has room for {}",
                   path.string(), human(Bytes(static_cast<std::int64_t>(bytes))),
                   human(Bytes(static_cast<std::int64_t>(room))));
}

}  // namespace plimsoll
