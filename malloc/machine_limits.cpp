#include "machine_limits.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernel.h"

namespace plimsoll::heap {
namespace {

constexpr std::size_t kText = 1024;

// The beginning of a file as a string; false when it cannot be read.
bool read_text(const char* path, char (&into)[kText]) {
  const int file = open_file(path, false);
  if (file < 0) return false;
  const long got = read_file(file, into, kText - 1);
  close_file(file);
  if (got <= 0) return false;
  into[got] = '\0';
  return true;
}

// The smallest of the limits in `file` from the group that follows `mark` up to the root.
std::size_t limit_of_group(const char* groups, const char* mark, const char* root,
                           const char* file) {
  const char* entry = std::strstr(groups, mark);
  if (entry == nullptr) return SIZE_MAX;
  const char* group = entry + std::strlen(mark);
  std::size_t length = std::strcspn(group, "\n");
  std::size_t least = SIZE_MAX;
  while (true) {
    const std::size_t of_root = std::strlen(root);
    const std::size_t of_file = std::strlen(file) + 1;
    char path[kText];
    if (of_root + length + of_file > sizeof path) return least;
    std::copy_n(file, of_file, std::copy_n(group, length, std::copy_n(root, of_root, path)));
    char text[kText];
    if (read_text(path, text)) {
      const std::size_t limit = limit_in(text);
      if (limit < least) least = limit;
    }
    if (length <= 1) return least;
    do {
      --length;
    } while (length > 1 && group[length] != '/');
  }
}

}  // namespace

std::size_t limit_in(const char* text) {
  std::size_t value = 0;
  if (*text < '0' || *text > '9') return SIZE_MAX;
  for (; *text >= '0' && *text <= '9'; ++text) {
    if (__builtin_mul_overflow(value, std::size_t{10}, &value)) return SIZE_MAX;
    value += static_cast<std::size_t>(*text - '0');
  }
  return value;
}

unsigned highest_node_in(const char* text) {
  unsigned number = 0;
  unsigned highest = 0;
  for (; *text != '\0'; ++text) {
    number = *text >= '0' && *text <= '9' ? number * 10 + static_cast<unsigned>(*text - '0') : 0;
    if (number > highest) highest = number;
  }
  return highest;
}

std::size_t cgroup_memory_limit() {
  char groups[kText];
  if (!read_text("/proc/self/cgroup", groups)) return SIZE_MAX;
  const std::size_t now = limit_of_group(groups, "0::", "/sys/fs/cgroup", "/memory.max");
  const std::size_t before =
      limit_of_group(groups, ":memory:", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes");
  return now < before ? now : before;
}

unsigned numa_nodes() {
  char text[kText];
  return read_text("/sys/devices/system/node/online", text) ? highest_node_in(text) + 1 : 1;
}

}  // namespace plimsoll::heap
