#include "plimsoll/device/cpu/free_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

namespace plimsoll::device {
namespace {

namespace fs = std::filesystem;

// Files of /proc and /sys have no size, so they cannot be mapped.
std::string text_of(const fs::path& path) {
  const std::ifstream file(path);
  std::ostringstream out;
  if (file) out << file.rdbuf();
  return out.str();
}

std::optional<std::int64_t> number_in(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end == text.data() || value < 0) return std::nullopt;
  return value;
}

// The number behind `key` at the beginning of a line.
std::optional<std::int64_t> entry_of(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) return number_in(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* droppable;  // in memory.stat
};
constexpr GroupFiles kSecondVersion{"memory.max", "memory.current", "inactive_file "};
constexpr GroupFiles kFirstVersion{"memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file "};

// What the groups from `path` up to `top` leave; nothing where none has a limit.
std::optional<std::int64_t> left_in_groups(const fs::path& top, const fs::path& path,
                                           const GroupFiles& files) {
  std::optional<std::int64_t> least;
  for (fs::path below = path.relative_path();; below = below.parent_path()) {
    const fs::path folder = top / below;
    const auto limit = number_in(text_of(folder / files.limit));  // "max" is no number
    const auto usage = number_in(text_of(folder / files.usage));
    if (limit && usage) {
      const auto droppable = entry_of(text_of(folder / "memory.stat"), files.droppable);
      const std::int64_t used = std::max<std::int64_t>(0, *usage - droppable.value_or(0));
      const std::int64_t left = std::max<std::int64_t>(0, *limit - used);
      least = std::min(least.value_or(left), left);
    }
    if (below.empty()) return least;
  }
}

}  // namespace

Result<FreeMemory> free_memory(const fs::path& root) {
  std::optional<FreeMemory> out;
  const auto consider = [&](std::optional<std::int64_t> bytes, const char* source) {
    if (bytes && (!out || Bytes(*bytes) < out->bytes)) out = FreeMemory{Bytes(*bytes), source};
  };
  const auto kib = entry_of(text_of(root / "proc/meminfo"), "MemAvailable:");
  if (kib && *kib < (std::int64_t{1} << 50)) consider(*kib << 10, "MemAvailable of this machine");
  std::istringstream groups(text_of(root / "proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path path = line.substr(second + 1);
    if (controllers.empty())
      consider(left_in_groups(root / "sys/fs/cgroup", path, kSecondVersion),
               "the limit of its control group");
    if (("," + controllers + ",").find(",memory,") != std::string::npos)
      consider(left_in_groups(root / "sys/fs/cgroup/memory", path, kFirstVersion),
               "the limit of its control group");
  }
  if (!out)
    return fail(ErrorCode::kDevice,
                "this machine does not say how much memory is free; give a number of bytes");
  return *out;
}

}  // namespace plimsoll::device
