#include "plimsoll/api/plan_files.h"

#include <filesystem>

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

Result<Entry> choose(const json& index, const model::ModelOptions& sizes) {
  if (index.value("schema", json(0)) != kSchema) return bad_input("an index of schema {} is expected", kSchema);
  const json option = index.value("option", json());
  const json members = index.value("members", json());
  if ((option != "batch" && option != "seq") || !members.is_array() || members.empty()) return bad_input("an index has an option, batch or seq, and members");
  const std::optional<std::int64_t>& wanted = option == "batch" ? sizes.batch : sizes.seq;
  std::optional<Entry> chosen;
  std::int64_t smallest = 0;
  std::int64_t largest = 0;
  for (const json& member : members) {
    PLIMSOLL_TRY(Entry entry, read_entry(member));
    smallest = &member == &members.front() ? entry.size : std::min(smallest, entry.size);
    largest = &member == &members.front() ? entry.size : std::max(largest, entry.size);
    if (wanted ? entry.size == *wanted : entry.size == largest) chosen = std::move(entry);
  }
  if (chosen) return *std::move(chosen);
  const auto name = option.get<std::string>();
  return fail(ErrorCode::kUsage, "--{} {}: the family has {} to {}", name, wanted.value_or(0), smallest, largest);
}

}  // namespace

Status write_family(const std::string& file, const SizeRange& sizes, const std::vector<FamilyMember>& family) {
  nlohmann::ordered_json index{{"kind", kKind}, {"schema", kSchema}, {"option", sizes.option}, {"members", nlohmann::ordered_json::array()}};
  for (const FamilyMember& member : family) {
    const std::string name = member_file(file, sizes.option, member.size);
    PLIMSOLL_RETURN_IF_ERROR(write_file(name, plan::to_json(member.plan)));
    index["members"].push_back({{"size", member.size}, {"file", std::filesystem::path(name).filename().string()},
                                {"arena_bytes", member.plan.arena_bytes().value}, {"shared", member.shared}});
  }
  return write_file(file, index.dump(1) + "\n");
}

Result<plan::Plan> read_plan(const std::string& file, const model::ModelOptions& sizes) {
  PLIMSOLL_TRY(std::string text, read_file(file));
  if (text.substr(0, 200).find(kKind) != std::string::npos) {
    const json index = json::parse(text, nullptr, false);
    if (!index.is_object() || index.value("kind", json()) != kKind) return bad_input("{}: not a family of plans", file);
    auto entry = choose(index, sizes);
    if (!entry) return forward(entry, file);
    PLIMSOLL_TRY(text, read_file(std::filesystem::path(file).parent_path() / entry->file));
  }
  auto plan = plan::parse_plan(text);
  if (!plan) return forward(plan, file);
  return plan;
}

}  // namespace plimsoll::api
