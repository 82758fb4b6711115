#include "plimsoll/profile/machine_rates.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/content_hash.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/profile/profile_machine.h"

namespace plimsoll::profile {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours kFresh{1};
constexpr double kBusy = 0.1;  // of the time, for which our threads waited for a core
constexpr std::uintmax_t kMostBytes = 1 << 16;

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line;
  return "";
}

// Of all threads together, since they began; 0 where the kernel does not say.
double seconds_without_a_core() {
  double out = 0;
  std::error_code none;
  for (const fs::directory_entry& task : fs::directory_iterator("/proc/self/task", none)) {
    std::ifstream file(task.path() / "schedstat");
    double ran = 0, waited = 0;
    if (file >> ran >> waited) out += 1e-9 * waited;
  }
  return out;
}

bool is_fresh(const fs::path& file) {
  std::error_code none;
  const auto written = fs::last_write_time(file, none);
  const auto now = fs::file_time_type::clock::now();
  return !none && written <= now && now - written < kFresh;
}

std::optional<schedule::DeviceProfile> kept_rates(const fs::path& file) {
  std::error_code none;
  if (!fs::is_regular_file(file, none) || fs::file_size(file, none) > kMostBytes) return {};
  const auto text = read_file(file);
  if (!text) return {};
  auto rates = schedule::read_profile(*text);
  if (!rates || !rates->operations_per_second.contains("fp32")) return {};
  return *std::move(rates);
}

struct Watched {
  schedule::DeviceProfile profile;
  bool beside_others = false;  // our threads had to wait for a core
};

Result<Watched> profile_watched(const ProfileOptions& how) {
  const double waited = seconds_without_a_core();
  const Stopwatch watch;
  Watched out;
  PLIMSOLL_TRY(out.profile, profile_machine(how));
  const double share = (seconds_without_a_core() - waited) / watch.seconds();
  out.beside_others = share > kBusy * resolve_threads(how.threads);
  if (out.beside_others) {
    log::info("rates of this machine: its cores are busy with other programs");
    out.profile.note += ", beside other programs";
  }
  return out;
}

}  // namespace

fs::path rates_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "plimsoll";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return fs::path(home) / ".cache" / "plimsoll";
  return {};
}

fs::path rates_file(const RatesOptions& options) {
  if (options.folder.empty()) return {};
  const std::string machine = fmt::format("{}\n{}\n{}", processor(), kernels::cpu_instruction_set(),
                                          kernels::cpu_kernel_library());
  const auto hash = content_hash(std::as_bytes(std::span(machine)));
  return options.folder /
         fmt::format("cpu{}-{}.json", resolve_threads(options.threads), hash_text(hash));
}

void keep_rates(const RatesOptions& options, const schedule::DeviceProfile& rates) {
  const fs::path file = rates_file(options);
  if (file.empty()) return;
  schedule::DeviceProfile alone = rates;
  alone.measured.clear();
  alone.efficiency.clear();
  std::error_code failed;
  fs::create_directories(options.folder, failed);
  const Status written = failed ? Status{} : write_file(file, schedule::to_json(alone));
  if (failed || !written)
    log::debug("rates of this machine are not kept: {}",
               failed ? failed.message() : written.error().message);
}

Result<schedule::DeviceProfile> machine_rates(const RatesOptions& options) {
  const fs::path file = rates_file(options);
  auto kept = kept_rates(file);
  if (kept && is_fresh(file)) return *std::move(kept);
  PLIMSOLL_TRY(Watched measured,
               profile_watched({.threads = options.threads, .quick = true, .on_progress = {}}));
  const schedule::DeviceProfile& shipped = *schedule::shipped_profile("cpu");
  measured.profile.disk = shipped.disk;
  measured.profile.copy_tax = shipped.copy_tax;
  if (!measured.beside_others) {
    keep_rates(options, measured.profile);
  } else if (kept) {
    return *std::move(kept);
  }
  return std::move(measured.profile);
}

Result<schedule::DeviceProfile> profile_and_keep(const ProfileOptions& how,
                                                 const fs::path& folder) {
  PLIMSOLL_TRY(Watched measured, profile_watched(how));
  if (!measured.beside_others) keep_rates({how.threads, folder}, measured.profile);
  return std::move(measured.profile);
}

schedule::DeviceProfile at_rates(schedule::DeviceProfile operators,
                                 const schedule::DeviceProfile& rates) {
  schedule::DeviceProfile out = std::move(operators);
  const double faster =
      rates.operations_per_second.at("fp32") / out.operations_per_second.at("fp32");
  for (auto& [dtype, rate] : out.operations_per_second) {
    const auto known = rates.operations_per_second.find(dtype);
    rate = known != rates.operations_per_second.end() ? known->second : rate * faster;
  }
  out.note = fmt::format(
      "operators as {} has them, at the rates of this machine ({}): {:.3g} "
      "GFLOP/s in fp32, {:.3g} GB/s",
      out.name, rates.note, 1e-9 * rates.operations_per_second.at("fp32"),
      1e-9 * rates.memory_bytes_per_second);
  out.name = rates.name;
  out.memory_bytes = rates.memory_bytes;
  out.memory_bytes_per_second = rates.memory_bytes_per_second;
  out.cache = rates.cache;
  out.launch_seconds = rates.launch_seconds;
  out.copies = rates.copies;
  out.copy_tax = rates.copy_tax;
  out.codecs = rates.codecs;
  return out;
}

}  // namespace plimsoll::profile
