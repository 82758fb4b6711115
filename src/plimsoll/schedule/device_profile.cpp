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

json json_of(const CopyRates& rates) {
  return {{"out_bytes_per_second", rates.out_bytes_per_second},
          {"in_bytes_per_second", rates.in_bytes_per_second},
          {"latency_seconds", rates.latency_seconds}};
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

const std::vector<DeviceProfile>& shipped() {
  static const std::vector<DeviceProfile> kProfiles = {cpu_of_two_cores(), h200()};
  return kProfiles;
}

}  // namespace

Cost cost_of(const DeviceProfile& profile, std::string_view signature, std::string_view dtype,
             double operations, double bytes_moved) {
  if (const auto found = profile.measured.find(std::string(signature));
      found != profile.measured.end()) {
    return {found->second, true};
  }
  auto rate = profile.operations_per_second.find(std::string(dtype));
  if (rate == profile.operations_per_second.end())
    rate = profile.operations_per_second.find("fp32");
  const double arithmetic =
      rate == profile.operations_per_second.end() ? 0 : operations / rate->second;
  const double roofline = std::max(arithmetic, bytes_moved / profile.memory_bytes_per_second);
  const auto reached =
      profile.efficiency.find(std::string(signature.substr(0, signature.find('('))));
  const double efficiency = reached == profile.efficiency.end() ? 1 : reached->second;
  return {profile.launch_seconds + roofline / efficiency, false};
}

std::string to_json(const DeviceProfile& profile) {
  const json file = {{"schema", 1},
                     {"name", profile.name},
                     {"note", profile.note},
                     {"memory_bytes", profile.memory_bytes.value},
                     {"operations_per_second", profile.operations_per_second},
                     {"memory_bytes_per_second", profile.memory_bytes_per_second},
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
  const auto memory = file.find("memory_bytes");
  if (memory == file.end() || !memory->is_number_unsigned() ||
      memory->get<std::uint64_t>() > 1ULL << 60) {
    return bad_input("profile: `memory_bytes` must be a whole number of bytes");
  }
  profile.memory_bytes = Bytes(memory->get<std::int64_t>());
  PLIMSOLL_TRY(profile.operations_per_second, numbers(file, "operations_per_second"));
  PLIMSOLL_TRY(profile.memory_bytes_per_second, number(file, "memory_bytes_per_second", false));
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
