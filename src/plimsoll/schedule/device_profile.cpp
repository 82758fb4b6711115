#include "plimsoll/schedule/device_profile.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"

namespace plimsoll::schedule {
namespace {

using nlohmann::json;

constexpr JsonLimits kProfileLimits{
    .bytes = std::size_t{64} << 20, .depth = 8, .values = 1'000'000};

Result<double> number(const json& object, const char* key, bool zero_allowed) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number())
    return bad_input("profile: `{}` must be a number", key);
  const double value = found->get<double>();
  if (!std::isfinite(value) || value < 0 || (value == 0 && !zero_allowed)) {
    return bad_input("profile: `{}` is {} and must be {}", key, value,
                     zero_allowed ? "0 or more" : "more than 0");
  }
  return value;
}

Result<std::map<std::string, double>> numbers(const json& file, const char* key) {
  std::map<std::string, double> out;
  const auto found = file.find(key);
  if (found == file.end()) return out;
  if (!found->is_object()) return bad_input("profile: `{}` must be an object of numbers", key);
  for (const auto& [name, value] : found->items()) {
    const double amount = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(amount) || amount <= 0)
      return bad_input("profile: `{}` of '{}' must be more than 0", key, name);
    out.emplace(name, amount);
  }
  return out;
}

Result<CopyRates> rates(const json& file, const char* key) {
  const auto found = file.find(key);
  if (found == file.end() || !found->is_object())
    return bad_input("profile: `{}` must be an object", key);
  CopyRates out;
  PLIMSOLL_TRY(out.out_bytes_per_second, number(*found, "out_bytes_per_second", false));
  PLIMSOLL_TRY(out.in_bytes_per_second, number(*found, "in_bytes_per_second", false));
  PLIMSOLL_TRY(out.latency_seconds, number(*found, "latency_seconds", true));
  return out;
}

Result<CodecRates> codec_rates(const json& file) {
  const auto found = file.find("codecs");
  if (found == file.end() || !found->is_object())
    return bad_input("profile: `codecs` must be an object");
  CodecRates out;
  PLIMSOLL_TRY(out.encode_bytes_per_second, number(*found, "encode_bytes_per_second", true));
  PLIMSOLL_TRY(out.decode_bytes_per_second, number(*found, "decode_bytes_per_second", true));
  PLIMSOLL_TRY(out.latency_seconds, number(*found, "latency_seconds", true));
  const auto forms = found->find("forms");
  if (forms == found->end()) return out;
  if (!forms->is_object()) return bad_input("profile: `forms` of `codecs` must be an object");
  for (const auto& [form, rate] : forms->items()) {
    if (!rate.is_object()) return bad_input("profile: `{}` of `codecs` must be an object", form);
    PLIMSOLL_TRY(out.forms[form].encode_bytes_per_second,
                 number(rate, "encode_bytes_per_second", false));
    PLIMSOLL_TRY(out.forms[form].decode_bytes_per_second,
                 number(rate, "decode_bytes_per_second", false));
  }
  return out;
}

Result<Bytes> whole_bytes(const json& file, const char* key) {
  const auto found = file.find(key);
  if (found == file.end() || !found->is_number_unsigned() ||
      found->get<std::uint64_t>() > 1ULL << 60) {
    return bad_input("profile: `{}` must be a whole number of bytes", key);
  }
  return Bytes(found->get<std::int64_t>());
}

// Profiles made before there was one have none.
Result<CacheRate> cache_rate(const json& file) {
  CacheRate out;
  const auto found = file.find("cache");
  if (found == file.end()) return out;
  if (!found->is_object()) return bad_input("profile: `cache` must be an object");
  PLIMSOLL_TRY(out.bytes, whole_bytes(*found, "bytes"));
  PLIMSOLL_TRY(out.bytes_per_second, number(*found, "bytes_per_second", false));
  return out;
}

json json_of(const CodecRates& rates) {
  json out = {{"encode_bytes_per_second", rates.encode_bytes_per_second},
              {"decode_bytes_per_second", rates.decode_bytes_per_second},
              {"latency_seconds", rates.latency_seconds}};
  for (const auto& [form, rate] : rates.forms) {
    out["forms"][form] = {{"encode_bytes_per_second", rate.encode_bytes_per_second},
                          {"decode_bytes_per_second", rate.decode_bytes_per_second}};
  }
  return out;
}

Result<MemoryLevel> memory_level(const json& from) {
  if (!from.is_object()) return bad_input("profile: every entry of `memories` must be an object");
  MemoryLevel out;
  const auto name = from.find("name");
  if (name == from.end() || !name->is_string() || name->get<std::string>().empty())
    return bad_input("profile: a memory without a `name`");
  out.name = name->get<std::string>();
  if (out.name == "device" || out.name == "host")
    return bad_input("profile: a memory is called '{}', which means another one", out.name);
  const auto bytes = from.find("bytes");
  if (bytes == from.end() || !bytes->is_number_unsigned() || bytes->get<std::uint64_t>() == 0 ||
      bytes->get<std::uint64_t>() > 1ULL << 60)
    return bad_input("profile: `bytes` of memory '{}' must be a whole number above 0", out.name);
  out.bytes = Bytes(bytes->get<std::int64_t>());
  PLIMSOLL_TRY(out.read_bytes_per_second, number(from, "read_bytes_per_second", false));
  PLIMSOLL_TRY(out.write_bytes_per_second, number(from, "write_bytes_per_second", false));
  const auto copies = rates(from, "copies");
  if (!copies) return forward(copies, "memory '" + out.name + "'");
  out.copies = *copies;
  return out;
}

Result<std::vector<MemoryLevel>> memory_levels(const json& file) {
  std::vector<MemoryLevel> out;
  const auto found = file.find("memories");
  if (found == file.end()) return out;
  if (!found->is_array() || found->size() > kMostMemoryLevels)
    return bad_input("profile: `memories` must be a list of at most {}", kMostMemoryLevels);
  for (const json& one : *found) {
    PLIMSOLL_TRY(MemoryLevel level, memory_level(one));
    for (const MemoryLevel& other : out) {
      if (other.name == level.name)
        return bad_input("profile: two memories are called '{}'", level.name);
    }
    out.push_back(std::move(level));
  }
  return out;
}

json json_of(const CopyRates& rates) {
  return {{"out_bytes_per_second", rates.out_bytes_per_second},
          {"in_bytes_per_second", rates.in_bytes_per_second},
          {"latency_seconds", rates.latency_seconds}};
}

json json_of(const std::vector<MemoryLevel>& levels) {
  json out = json::array();
  for (const MemoryLevel& level : levels) {
    out.push_back({{"name", level.name},
                   {"bytes", level.bytes.value},
                   {"read_bytes_per_second", level.read_bytes_per_second},
                   {"write_bytes_per_second", level.write_bytes_per_second},
                   {"copies", json_of(level.copies)}});
  }
  return out;
}

std::string text_of(const json& file, const char* key) {
  const auto found = file.find(key);
  return found != file.end() && found->is_string() ? found->get<std::string>() : std::string();
}

DeviceProfile cpu_of_two_cores() {
  DeviceProfile profile;
  profile.name = "cpu2";
  profile.note =
      "2-core x86-64 with AVX-512: fp32 products and disk reads measured, the rest estimated; "
      "`plimsoll profile` measures all";
  profile.memory_bytes = 24_GiB;
  profile.operations_per_second = {
      {"fp32", 220e9}, {"fp64", 110e9}, {"bf16", 110e9}, {"fp16", 110e9}, {"int8", 220e9}};
  profile.memory_bytes_per_second = 18e9;
  profile.launch_seconds = 2e-6;
  profile.copies = {5e9, 5e9, 20e-6};
  profile.disk = {1e9, 3.3e9, 200e-6};
  profile.copy_tax = 0.5;
  profile.codecs = {8e9, 10e9, 10e-6};
  return profile;
}

DeviceProfile h200() {
  DeviceProfile profile;
  profile.name = "h200";
  profile.note =
      "measured: pinned copies 55.4 GB/s each way (50.8 each when both run), 4 KiB in 7.3 us, "
      "device copy 4.24 TB/s, launch 3.0 us; "
      "arithmetic, disk and link not measured: 70 % of the maker's dense figures, a disk of 3.3 "
      "GB/s, 200 GB/s and 15 us between cards";
  profile.memory_bytes = 139_GiB;
  profile.operations_per_second = {{"fp64", 47e12},  {"fp32", 47e12},  {"tf32", 346e12},
                                   {"bf16", 692e12}, {"fp16", 692e12}, {"fp8", 1385e12},
                                   {"int8", 1385e12}};
  profile.memory_bytes_per_second = 4.24e12;
  profile.launch_seconds = 3.0e-6;
  profile.copies = {50.8e9, 50.8e9, 7.3e-6};
  profile.disk = {1e9, 3.3e9, 200e-6};
  profile.codecs = {1e12, 1e12, 6e-6};
  profile.link = {200e9, 15e-6};
  return profile;
}

// Rates of a Cortex-M7 of 480 MHz from its data sheet: four int8 or one fp32 multiply-add a cycle,
// SRAM of 64 bits a cycle, memory-mapped flash over four lines.
DeviceProfile microcontroller() {
  DeviceProfile profile;
  profile.name = "microcontroller";
  profile.note =
      "a model, nothing measured: 480 MHz, 256 KiB of SRAM, weights read from 2 MiB of flash";
  profile.memory_bytes = 2_MiB;
  profile.operations_per_second = {{"fp32", 0.96e9}, {"int8", 3.8e9}};
  profile.memory_bytes_per_second = 66e6;
  profile.launch_seconds = 1e-6;
  profile.copies = {60e6, 60e6, 1e-6};
  profile.disk = {1e6, 4e6, 1e-3};
  profile.codecs = {0, 0, 0};
  profile.memories = {{"sram", 256_KiB, 3.8e9, 3.8e9, {60e6, 60e6, 1e-6}}};
  profile.read_only = true;
  return profile;
}

DeviceProfile accelerator() {
  DeviceProfile profile;
  profile.name = "accelerator";
  profile.note =
      "a model, nothing measured: 128 MiB on the chip at 16 times the rate of its HBM, in the "
      "manner of a TPU";
  profile.memory_bytes = 32_GiB;
  profile.operations_per_second = {
      {"fp32", 70e12}, {"bf16", 275e12}, {"fp16", 275e12}, {"int8", 275e12}};
  profile.memory_bytes_per_second = 1.2e12;
  profile.launch_seconds = 1e-6;
  profile.copies = {30e9, 30e9, 10e-6};
  profile.disk = {1e9, 3.3e9, 200e-6};
  profile.codecs = {0.5e12, 0.5e12, 5e-6};
  profile.memories = {{"on-chip", 128_MiB, 19.2e12, 19.2e12, {1.2e12, 1.2e12, 1e-6}}};
  return profile;
}

DeviceProfile gpu_with_l2_window() {
  DeviceProfile profile = h200();
  profile.name = "gpu-l2";
  profile.note =
      "a model, nothing measured: the h200 profile with 30 MiB of its L2 cache set aside for "
      "chosen addresses at 2.5 times the rate of its memory";
  profile.memories = {{"l2-window", 30_MiB, 10e12, 10e12, {4e12, 4e12, 3e-6}}};
  return profile;
}

const std::vector<DeviceProfile>& shipped() {
  static const std::vector<DeviceProfile> kProfiles = {
      cpu_of_two_cores(), h200(), microcontroller(), accelerator(), gpu_with_l2_window()};
  return kProfiles;
}

double seconds_to_move(const DeviceProfile& profile, double bytes) {
  const double cached = std::min(bytes, static_cast<double>(profile.cache.bytes.value));
  return cached / profile.cache.bytes_per_second +
         (bytes - cached) / profile.memory_bytes_per_second;
}

}  // namespace

double CostParts::with_memory(double memory_seconds, double home_seconds) const {
  const auto roofline = [&](double memory) {
    return launch_seconds + std::max(arithmetic_seconds, memory) / efficiency;
  };
  const double home = roofline(home_seconds);
  return home > 0 ? seconds * roofline(memory_seconds) / home : seconds;
}

CostParts cost_parts(const DeviceProfile& profile, std::string_view signature,
                     std::string_view dtype, double operations, double bytes_moved) {
  CostParts parts;
  auto rate = profile.operations_per_second.find(std::string(dtype));
  if (rate == profile.operations_per_second.end())
    rate = profile.operations_per_second.find("fp32");
  parts.launch_seconds = profile.launch_seconds;
  parts.arithmetic_seconds =
      rate == profile.operations_per_second.end() ? 0 : operations / rate->second;
  parts.bytes_moved = bytes_moved;
  const auto reached =
      profile.efficiency.find(std::string(signature.substr(0, signature.find('('))));
  if (reached != profile.efficiency.end()) parts.efficiency = reached->second;
  const double memory = seconds_to_move(profile, bytes_moved);
  parts.seconds =
      parts.launch_seconds + std::max(parts.arithmetic_seconds, memory) / parts.efficiency;
  if (const auto found = profile.measured.find(std::string(signature));
      found != profile.measured.end())
    parts.seconds = found->second;
  return parts;
}

Cost cost_of(const DeviceProfile& profile, std::string_view signature, std::string_view dtype,
             double operations, double bytes_moved) {
  return {cost_parts(profile, signature, dtype, operations, bytes_moved).seconds,
          profile.measured.contains(std::string(signature))};
}

std::string to_json(const DeviceProfile& profile) {
  json file = {{"schema", 1},
               {"name", profile.name},
               {"note", profile.note},
               {"memory_bytes", profile.memory_bytes.value},
               {"operations_per_second", profile.operations_per_second},
               {"memory_bytes_per_second", profile.memory_bytes_per_second},
               {"cache",
                {{"bytes", profile.cache.bytes.value},
                 {"bytes_per_second", profile.cache.bytes_per_second}}},
               {"launch_seconds", profile.launch_seconds},
               {"efficiency", profile.efficiency},
               {"copies", json_of(profile.copies)},
               {"disk", json_of(profile.disk)},
               {"copy_tax", profile.copy_tax},
               {"codecs", json_of(profile.codecs)},
               {"link",
                {{"bytes_per_second", profile.link.bytes_per_second},
                 {"latency_seconds", profile.link.latency_seconds}}},
               {"measured", profile.measured}};
  if (!profile.memories.empty()) file["memories"] = json_of(profile.memories);
  if (profile.read_only) file["read_only"] = true;
  return json_text(file, 1) + "\n";
}

Result<DeviceProfile> read_profile(std::string_view text) {
  const auto tree = parse_json(text, kProfileLimits);
  if (!tree) return forward(tree, "profile");
  const json& file = *tree;
  if (!file.is_object()) return bad_input("a profile is a JSON object");
  const auto schema = file.find("schema");
  if (schema == file.end() || *schema != 1) return bad_input("profile: `schema` must be 1");
  DeviceProfile profile;
  profile.name = text_of(file, "name");
  profile.note = text_of(file, "note");
  PLIMSOLL_TRY(profile.memory_bytes, whole_bytes(file, "memory_bytes"));
  PLIMSOLL_TRY(profile.operations_per_second, numbers(file, "operations_per_second"));
  PLIMSOLL_TRY(profile.memory_bytes_per_second, number(file, "memory_bytes_per_second", false));
  PLIMSOLL_TRY(profile.cache, cache_rate(file));
  PLIMSOLL_TRY(profile.launch_seconds, number(file, "launch_seconds", true));
  PLIMSOLL_TRY(profile.efficiency, numbers(file, "efficiency"));
  PLIMSOLL_TRY(profile.copies, rates(file, "copies"));
  PLIMSOLL_TRY(profile.disk, rates(file, "disk"));
  PLIMSOLL_TRY(profile.copy_tax, number(file, "copy_tax", true));
  PLIMSOLL_TRY(profile.codecs, codec_rates(file));
  if (const auto link = file.find("link"); link != file.end()) {
    if (!link->is_object()) return bad_input("profile: `link` must be an object");
    PLIMSOLL_TRY(profile.link.bytes_per_second, number(*link, "bytes_per_second", false));
    PLIMSOLL_TRY(profile.link.latency_seconds, number(*link, "latency_seconds", true));
  }
  PLIMSOLL_TRY(profile.measured, numbers(file, "measured"));
  PLIMSOLL_TRY(profile.memories, memory_levels(file));
  const auto read_only = file.find("read_only");
  if (read_only != file.end() && !read_only->is_boolean())
    return bad_input("profile: `read_only` must be true or false");
  profile.read_only = read_only != file.end() && read_only->get<bool>();
  if (profile.read_only && profile.memories.empty())
    return bad_input("profile: device memory is `read_only`, and there are no other `memories`");
  return profile;
}

const DeviceProfile* shipped_profile(std::string_view name) {
  if (name == "cpu") name = "cpu2";
  const auto& all = shipped();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const DeviceProfile& profile) { return profile.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> shipped_profile_names() {
  std::vector<std::string> names;
  for (const DeviceProfile& profile : shipped()) names.push_back(profile.name);
  return names;
}

}  // namespace plimsoll::schedule
