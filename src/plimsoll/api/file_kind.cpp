#include "plimsoll/api/file_kind.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/model/zoo.h"

namespace plimsoll::api {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

struct Beginning {
  std::string_view bytes;
  std::string_view kind;
};

constexpr std::array<Beginning, 13> kBeginnings = {{
    {"\x89PNG\r\n"sv, "a PNG picture"},
    {"\xff\xd8\xff"sv, "a JPEG picture"},
    {"GIF8"sv, "a GIF picture"},
    {"<svg"sv, "an SVG picture"},
    {"BM"sv, "a bitmap picture"},
    {"%PDF"sv, "a PDF document"},
    {"\x89HDF"sv, "an HDF5 file; export the model to ONNX"},
    {"GGUF"sv, "a GGUF file of weights; export the model to ONNX"},
    {"PK\x03\x04"sv,
     "a zip archive, as .npz files and PyTorch checkpoints are; weights alone are no model: "
     "torch.onnx.export writes one, and --weights takes an .npz"},
    {"\x80\x02"sv, "a Python pickle; `plimsoll view` shows a memory snapshot of PyTorch"},
    {"\x80\x04"sv, "a Python pickle; `plimsoll view` shows a memory snapshot of PyTorch"},
    {"\x1f\x8b"sv, "a gzip file; `plimsoll view` shows a memory snapshot of PyTorch"},
    {"\x7f"
     "ELF"sv,
     "a program"},
}};

// Words that stand in the beginning of what we write.
struct Written {
  std::array<std::string_view, 2> words;
  std::string_view kind;
  bool is_read_as_plan = false;
};

constexpr std::array<Written, 6> kOurs = {{
    {{"\"plimsoll plan\"", ""},
     "a plan; `plimsoll run`, `check`, `view` and `explain` take it",
     true},
    {{"\"plimsoll family\"", ""}, "a plan set; `plimsoll run` and `check` take it", true},
    {{"\"plimsoll schedule\"", ""},
     "a schedule of `plan --dag`; `plimsoll check`, `view` and `explain` take it",
     true},
    {{"\"baseline_bytes\"", "\"inplace_bytes\""},
     "what `plan` says with --json or --sweep; `plimsoll view` draws a sweep, `plan -o` writes a "
     "plan"},
    {{"\"lower_bound\"", "\"height\""}, "a packing; `plimsoll pack --check` takes it"},
    {{"\"bytes_per_second\"", "\"copies\""}, "a device profile; --device takes it"},
}};

std::string first_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string out(4096, '\0');
  file.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return out;
}

// Which of ours it is, if one.
const Written* written_by_us(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return nullptr;
  const std::string first = first_bytes(path);
  const std::size_t begin = first.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || first[begin] != '{') return nullptr;
  for (const Written& one : kOurs) {
    const bool all = std::all_of(one.words.begin(), one.words.end(), [&](std::string_view word) {
      return first.find(word) != std::string::npos;
    });
    if (all) return &one;
  }
  return nullptr;
}

// Of a CSV that `pack` reads or writes, by its header; lifetimes have two spellings.
std::optional<std::string> kind_of_packing(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const std::string first = first_bytes(path);
  const std::string header = first.substr(0, first.find('\n'));
  const auto has = [&](std::string_view title) { return header.find(title) != std::string::npos; };
  const bool lifetimes = (has("lower") && has("upper")) || (has("start") && has("end"));
  if (!lifetimes || !has("size") || !has(",") || header.find_first_of("{[\"") != std::string::npos)
    return std::nullopt;
  return has("offset") ? "a packing; `plimsoll pack --check PROBLEM PACKING` checks it"
                       : "a packing problem; `plimsoll pack` takes it";
}

std::string folder_text(const std::string& path) {
  std::vector<std::string> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".onnx") models.push_back(entry.path().string());
  }
  std::sort(models.begin(), models.end());
  constexpr std::size_t kNamed = 3;
  if (models.size() > kNamed) models.resize(kNamed);
  if (models.empty()) return "a folder without .onnx files";
  return fmt::format("a folder; name a model in it: {}", fmt::join(models, ", "));
}

}  // namespace

std::optional<std::string> kind_of_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return folder_text(path);
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const std::string first = first_bytes(path);
  for (const Beginning& beginning : kBeginnings) {
    if (first.starts_with(beginning.bytes)) return std::string(beginning.kind);
  }
  if (first.starts_with("RIFF") && first.substr(0, 12).ends_with("WEBP")) return "a WebP picture";
  if (first.size() > 9 && first[8] == '{' && first.find("\"dtype\"") != std::string::npos)
    return "a safetensors file; weights alone are no model, torch.onnx.export writes one";
  if (first.starts_with("{\"plimsoll_trace\""))
    return "a trace of a run; `plimsoll view`, `replay` and `explain` take it";
  return kind_of_ours(path);
}

std::optional<std::string> kind_of_any(const std::string& path) {
  if (auto known = kind_of_file(path)) return known;
  if (auto packing = kind_of_packing(path)) return packing;
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  if (!fs::is_regular_file(path, error)) return "a device, a pipe or a socket";
  const std::string first = first_bytes(path);
  if (first.empty()) return "an empty file";
  const bool text = std::none_of(first.begin(), first.end(), [](unsigned char c) {
    return c < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
  if (!text) return "a file of another kind";
  const std::size_t begin = first.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && first[begin] == '{') {
    return first.find("\"nodes\"") != std::string::npos
               ? "a graph as JSON; `plimsoll plan --dag` takes it"
               : "a JSON file";
  }
  return "a text file";
}

std::optional<std::string> kind_of_ours(const std::string& path) {
  const Written* one = written_by_us(path);
  return one != nullptr ? std::optional<std::string>(one->kind) : std::nullopt;
}

bool is_read_as_plan(const std::string& model) {
  if (model.ends_with(".json")) return true;
  if (model::find_model(model) != nullptr) return false;
  const Written* one = written_by_us(model);
  return one != nullptr && one->is_read_as_plan;
}

Error naming_kind(Error error, const std::string& path, std::string_view wanted) {
  if (error.code != ErrorCode::kBadInput) return error;
  auto kind = kind_of_ours(path);
  // A problem with a fault in it is still a problem.
  if (!kind && wanted.find("packing") == std::string_view::npos) kind = kind_of_packing(path);
  if (kind) error.message = fmt::format("{}: no {} but {}", path, wanted, *kind);
  return error;
}

}  // namespace plimsoll::api
