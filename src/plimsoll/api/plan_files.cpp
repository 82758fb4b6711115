#include "plimsoll/api/plan_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "plimsoll/base/file.h"
#include "plimsoll/plan/plan_file.h"

namespace plimsoll::api {
namespace {

using nlohmann::json;

constexpr std::string_view kKind = "plimsoll family";
constexpr int kSchema = 1;

// "plan.json" for batch 8: "plan.batch8.json".
std::string member_file(const std::string& index, const std::string& option, std::int64_t size) {
  const std::size_t dot = index.ends_with(".json") ? index.size() - 5 : index.size();
  return fmt::format("{}.{}{}{}", index.substr(0, dot), option, size, index.substr(dot));
}

struct Entry {
  std::int64_t size = 0;
  std::string file;
};

Result<Entry> read_entry(const json& member) {
  if (!member.is_object() || !member.contains("size") || !member["size"].is_number_integer() || !member.contains("file") ||
      !member["file"].is_string()) {
    return bad_input("a member should be {{size, file}}");
  }
  Entry out{member["size"].get<std::int64_t>(), member["file"].get<std::string>()};
  if (out.file.empty() || std::filesystem::path(out.file).filename() != out.file) {
    return bad_input("member file '{}': expects a name beside the index", out.file);
  }
  return out;
}

struct Index {
  std::string option;
  std::vector<Entry> entries;  // smallest first
};

Result<Index> parse_index(std::string_view text) {
  const json index = json::parse(text, nullptr, false);
  if (!index.is_object() || index.value("kind", json()) != kKind) return bad_input("not a family of plans");
  if (index.value("schema", json(0)) != kSchema) return bad_input("an index of schema {} is expected", kSchema);
  const json option = index.value("option", json());
  const json members = index.value("members", json());
  if ((option != "batch" && option != "seq") || !members.is_array() || members.empty()) return bad_input("an index has an option, batch or seq, and members");
  Index out{option.get<std::string>(), {}};
  for (const json& member : members) {
    PLIMSOLL_TRY(Entry entry, read_entry(member));
    out.entries.push_back(std::move(entry));
  }
  std::sort(out.entries.begin(), out.entries.end(), [](const Entry& a, const Entry& b) { return a.size < b.size; });
  return out;
}

Result<Entry> choose(const Index& index, std::optional<std::int64_t> wanted) {
  if (!wanted) return index.entries.back();
  const auto found = std::find_if(index.entries.begin(), index.entries.end(), [&](const Entry& entry) { return entry.size == *wanted; });
  if (found != index.entries.end()) return *found;
  return fail(ErrorCode::kUsage, "--{} {}: the family has {} to {}", index.option, *wanted, index.entries.front().size, index.entries.back().size);
}

bool is_index(std::string_view text) { return text.substr(0, 200).find(kKind) != std::string_view::npos; }

Result<plan::Plan> read_member(const std::string& index, const Entry& entry) {
  const std::filesystem::path file = std::filesystem::path(index).parent_path() / entry.file;
  PLIMSOLL_TRY(const std::string text, read_file(file));
  auto plan = plan::parse_plan(text);
  if (!plan) return forward(plan, file.string());
  return plan;
}

}  // namespace

Status write_family(const std::string& file, const SizeRange& sizes, const std::vector<FamilyMember>& family) {
  nlohmann::ordered_json index{{"kind", kKind}, {"schema", kSchema}, {"option", sizes.option}, {"members", nlohmann::ordered_json::array()}};
  std::vector<OutputFile> files;
  const auto write = [&](const std::string& name, const std::string& content) -> Status {
    PLIMSOLL_TRY(OutputFile out, OutputFile::create(name));
    PLIMSOLL_RETURN_IF_ERROR(out.write(content));
    PLIMSOLL_RETURN_IF_ERROR(out.finish());
    files.push_back(std::move(out));
    return {};
  };
  for (const FamilyMember& member : family) {
    const std::string name = member_file(file, sizes.option, member.size);
    PLIMSOLL_RETURN_IF_ERROR(write(name, plan::to_json(member.plan)));
    index["members"].push_back({{"size", member.size}, {"file", std::filesystem::path(name).filename().string()},
                                {"arena_bytes", member.plan.arena_bytes().value}, {"shared", member.shared}});
  }
  PLIMSOLL_RETURN_IF_ERROR(write(file, index.dump(1) + "\n"));
  return commit_together(files);
}

Result<plan::Plan> read_plan(const std::string& file, model::ModelOptions sizes) {
  PLIMSOLL_TRY(const std::string text, read_file(file));
  if (is_index(text)) {
    const auto index = parse_index(text);
    if (!index) return forward(index, file);
    const auto entry = choose(*index, size_option(sizes, index->option));
    if (!entry) return forward(entry, file);
    return read_member(file, *entry);
  }
  auto plan = plan::parse_plan(text);
  if (!plan) return forward(plan, file);
  return plan;
}

Result<std::vector<plan::Plan>> read_plans(const std::string& file, const SizeRange& sizes) {
  PLIMSOLL_TRY(const std::string text, read_file(file));
  if (!is_index(text)) return bad_input("{}: one plan, for one size; `plimsoll plan MODEL --sizes` makes a family", file);
  const auto index = parse_index(text);
  if (!index) return forward(index, file);
  if (index->option != sizes.option) return fail(ErrorCode::kUsage, "{}: a family for every {}, not {}", file, index->option, sizes.option);
  std::vector<plan::Plan> out;
  for (std::int64_t size = sizes.low; size <= sizes.high; ++size) {
    const auto entry = choose(*index, size);
    if (!entry) return forward(entry, file);
    PLIMSOLL_TRY(plan::Plan plan, read_member(file, *entry));
    out.push_back(std::move(plan));
  }
  return out;
}

}  // namespace plimsoll::api
