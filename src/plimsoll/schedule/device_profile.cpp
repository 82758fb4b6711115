#include "plimsoll/schedule/device_profile.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include <nlohmann/json.hpp>

#include "plimsoll/base/check.h"
#include "plimsoll/base/json.h"
#include "plimsoll/schedule/h200_profile.h"

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

std::string text_of(const json& file, const char* key) {
  const auto found = file.find(key);
  return found != file.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<std::optional<ProfiledCard>> profiled_card(const json& file) {
  const auto found = file.find("card");
  if (found == file.end()) return std::optional<ProfiledCard>();
  if (!found->is_object()) return bad_input("profile: `card` must be an object");
  ProfiledCard out;
  out.instruction_set = text_of(*found, "instruction_set");
  out.library = text_of(*found, "library");
  const auto kernels = found->find("kernels");
  if (kernels == found->end()) return std::optional(std::move(out));
  if (!kernels->is_object()) return bad_input("profile: `kernels` of `card` must be an object");
  for (const auto& [signature, need] : kernels->items()) {
    if (!need.is_object())
      return bad_input("profile: `kernels` of '{}' must be an object", signature);
    KernelNeed& kernel = out.kernels[signature];
    PLIMSOLL_TRY(kernel.scratch, whole_bytes(need, "scratch_bytes"));
    const auto in_place = need.find("in_place");
    if (in_place != need.end() && !in_place->is_boolean())
      return bad_input("profile: `in_place` of '{}' must be true or false", signature);
    kernel.in_place = in_place == need.end() || in_place->get<bool>();
    if (need.contains("engine") && !need["engine"].is_string())
      return bad_input("profile: `engine` of '{}' must be text", signature);
    kernel.engine = text_of(need, "engine");
  }
  return std::optional(std::move(out));
}

json json_of(const ProfiledCard& card) {
  json kernels = json::object();
  for (const auto& [signature, need] : card.kernels) {
    json& one = kernels[signature] = {{"scratch_bytes", need.scratch.value}};
    if (!need.in_place) one["in_place"] = false;
    if (!need.engine.empty()) one["engine"] = need.engine;
  }
  return {{"instruction_set", card.instruction_set},
          {"library", card.library},
          {"kernels", std::move(kernels)}};
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

// Rates and efficiencies as tools/calibrate_profile.py printed them.
DeviceProfile cpu_of_two_cores() {
  DeviceProfile profile;
  profile.name = "cpu2";
  profile.note =
      "2-core x86-64 with AVX-512: products of fp32 and bf16, memory, copies, encodings and the "
      "efficiency of operators measured, the rest estimated; `plimsoll profile` measures all";
  profile.memory_bytes = 24_GiB;
  profile.operations_per_second = {
      {"fp32", 219e9}, {"fp64", 109e9}, {"bf16", 425e9}, {"fp16", 118e9}, {"int8", 236e9}};
  profile.memory_bytes_per_second = 36.5e9;
  profile.cache = {Bytes(3 << 19), 83e9};
  profile.launch_seconds = 4e-7;
  profile.efficiency = {{"adamw", 1.50},
                        {"add", 0.91},
                        {"add_relu", 1.01},
                        {"attention", 0.62},
                        {"attention_grad", 0.71},
                        {"attention_qkv", 0.40},
                        {"attention_qkv_grad", 0.52},
                        {"avg_pool", 0.68},
                        {"avg_pool_grad", 0.75},
                        {"batch_norm", 0.64},
                        {"batch_norm_grad", 0.60},
                        {"batch_norm_inference", 1.04},
                        {"clip", 0.69},
                        {"clip_grad", 0.57},
                        {"concat", 0.84},
                        {"conv", 0.99},
                        {"conv_grad_input", 0.91},
                        {"conv_grad_weight", 0.87},
                        // In groups: of 24 channels (regnetx_016) and of one (mobilenet), and, from
                        // a busy machine, of 4 to 8 (resnext50_32x4d).
                        {"conv.groups", 0.37},
                        {"conv_grad_input.groups", 0.36},
                        {"conv_grad_weight.groups", 0.36},
                        {"conv.depthwise", 0.66},
                        {"conv_grad_input.depthwise", 0.66},
                        {"conv_grad_weight.depthwise", 0.56},
                        {"conv.narrow", 0.10},
                        {"conv_grad_input.narrow", 0.06},
                        {"conv_grad_weight.narrow", 0.02},
                        {"conv_transpose", 0.73},
                        {"cross_entropy", 0.39},
                        {"cross_entropy_grad", 1.00},
                        {"dropout", 0.36},
                        {"gather_grad", 0.99},
                        {"gelu", 0.49},
                        {"gelu_grad", 0.51},
                        {"layer_norm", 0.81},
                        {"layer_norm_grad", 1.01},
                        {"linear", 0.89},
                        {"linear_grad_weight", 0.89},
                        {"max_pool", 0.53},
                        {"max_pool_grad", 0.49},
                        {"mul", 0.76},
                        {"reduce_sum", 1.29},
                        {"relu", 0.69},
                        {"relu_grad", 0.97},
                        {"reorder", 0.48},
                        {"sigmoid", 0.15},
                        {"sigmoid_grad", 0.69},
                        {"slice", 1.29},
                        {"split", 0.48},
                        {"tanh", 0.11},
                        {"transpose", 0.39}};
  profile.copies = {15.9e9, 16.9e9, 20e-6};
  profile.disk = {1e9, 3.3e9, 200e-6};
  profile.copy_tax = 0.5;
  profile.codecs = {15.9e9, 14.9e9, 10e-6};
  return profile;
}

// The rates of an H200 without what was measured on one: 70 % of the maker's dense arithmetic.
DeviceProfile gpu_rates() {
  DeviceProfile profile;
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
  DeviceProfile profile = gpu_rates();
  profile.name = "gpu-l2";
  profile.note =
      "a model, nothing measured: the rates of an H200 with 30 MiB of its L2 cache set aside for "
      "chosen addresses at 2.5 times the rate of its memory";
  profile.memories = {{"l2-window", 30_MiB, 10e12, 10e12, {4e12, 4e12, 3e-6}}};
  return profile;
}

const std::vector<DeviceProfile>& shipped() {
  static const std::vector<DeviceProfile> kProfiles = {cpu_of_two_cores(), microcontroller(),
                                                       accelerator(), gpu_with_l2_window()};
  return kProfiles;
}

constexpr std::string_view kH200 = "h200";

// Read when somebody asks for it: it has the times of many operators.
const DeviceProfile& measured_h200() {
  static const DeviceProfile kProfile = [] {
    auto read = read_profile(kH200Profile);
    PLIMSOLL_CHECK(read.has_value(), "profiles/h200.json: {}", read.error().message);
    return *std::move(read);
  }();
  return kProfile;
}

// Groups of so many channels fill vectors as dense convolutions do.
constexpr std::int64_t kVectorChannels = 16;

// The number behind `before`, or nothing.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view before) {
  const std::size_t place = text.find(before);
  if (place == std::string_view::npos) return std::nullopt;
  const char* const begin = text.data() + place + before.size();
  std::int64_t out = 0;
  const auto read = std::from_chars(begin, text.data() + text.size(), out);
  return read.ec == std::errc() ? std::optional(out) : std::nullopt;
}

double efficiency_of(const DeviceProfile& profile, std::string_view signature) {
  auto found = profile.efficiency.find(cost_class(signature));
  if (found == profile.efficiency.end())
    found = profile.efficiency.find(std::string(signature.substr(0, signature.find('('))));
  return found == profile.efficiency.end() ? 1 : found->second;
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

std::string cost_class(std::string_view signature) {
  std::string out(signature.substr(0, signature.find('(')));
  if (!out.starts_with("conv")) return out;
  const auto behind = [&](char mark) {
    return signature.substr(std::min(signature.size(), signature.find(mark)));
  };
  const auto groups = number_behind(behind('{'), "group=");
  const auto channels = number_behind(behind('['), ",");  // conv(fp32[batch,channels,...
  if (!groups || *groups <= 1 || !channels) return out;
  const std::int64_t of_group = *channels / *groups;
  if (of_group <= 1) return out + ".depthwise";
  if (of_group % kVectorChannels == 0) return out;
  return out + (of_group < kVectorChannels ? ".narrow" : ".groups");
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
  parts.efficiency = efficiency_of(profile, signature);
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
  if (profile.card) file["card"] = json_of(*profile.card);
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
  PLIMSOLL_TRY(profile.card, profiled_card(file));
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
  if (name == kH200) return &measured_h200();
  if (name == "cpu") name = "cpu2";
  const auto& all = shipped();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const DeviceProfile& profile) { return profile.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> shipped_profile_names() {
  std::vector<std::string> names;
  for (const DeviceProfile& profile : shipped()) names.push_back(profile.name);
  names.insert(names.begin() + 1, std::string(kH200));
  return names;
}

}  // namespace plimsoll::schedule
