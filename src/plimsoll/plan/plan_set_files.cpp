#include "plimsoll/plan/plan_set_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "plimsoll/base/file.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/output_file.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/plan/plan_set_index.h"

namespace plimsoll::plan {
namespace {

// "plan.json" for batch 8: "plan.batch8.json".
std::string member_file(const std::string& index, const std::string& option, std::int64_t size) {
  const std::size_t dot = index.ends_with(".json") ? index.size() - 5 : index.size();
  return fmt::format("{}.{}{}{}", index.substr(0, dot), option, size, index.substr(dot));
}

Result<PlanSetEntry> choose(const PlanSetIndex& index, std::optional<std::int64_t> wanted) {
  if (!wanted) return index.entries.back();
  const auto found = std::find_if(index.entries.begin(), index.entries.end(),
                                  [&](const PlanSetEntry& entry) { return entry.size == *wanted; });
  if (found != index.entries.end()) return *found;
  return fail(ErrorCode::kUsage, "--{} {}: the plan set has {} to {}", index.option, *wanted,
              index.entries.front().size, index.entries.back().size);
}

Result<Plan> read_member(const std::string& index, const PlanSetEntry& entry) {
  const std::filesystem::path file = std::filesystem::path(index).parent_path() / entry.file;
  PLIMSOLL_TRY(const std::string text, read_file(file));
  auto plan = parse_plan(text);
  if (!plan) return forward(plan, file.string());
  if (entry.arena && *entry.arena != plan->arena_bytes()) {
    return bad_input("{}: its arena has {} bytes, the index {} says {}; plan the plan set again",
                     file.string(), plan->arena_bytes(), index, *entry.arena);
  }
  return plan;
}

}  // namespace

Status write_plan_set(const std::string& file, const SizeRange& sizes,
                      const std::vector<PlanSetMember>& plans) {
  if (!is_utf8(std::filesystem::path(file).filename().string())) {
    return fail(
        ErrorCode::kUsage,
        "{}: the index of a plan set is JSON and names its members in UTF-8; choose such a name",
        excerpt(file));
  }
  nlohmann::ordered_json index{{"kind", kPlanSetKind},
                               {"schema", kPlanSetSchema},
                               {"option", sizes.option},
                               {"members", nlohmann::ordered_json::array()}};
  std::vector<OutputFile> files;
  const auto write = [&](const std::string& name, const std::string& content) -> Status {
    PLIMSOLL_TRY(OutputFile out, OutputFile::create(name));
    PLIMSOLL_RETURN_IF_ERROR(out.write(content));
    PLIMSOLL_RETURN_IF_ERROR(out.finish());
    files.push_back(std::move(out));
    return {};
  };
  for (const PlanSetMember& member : plans) {
    const std::string name = member_file(file, sizes.option, member.size);
    PLIMSOLL_RETURN_IF_ERROR(write(name, to_json(member.plan)));
    index["members"].push_back({{"size", member.size},
                                {"file", std::filesystem::path(name).filename().string()},
                                {"arena_bytes", member.plan.arena_bytes().value},
                                {"shared", member.shared}});
  }
  PLIMSOLL_RETURN_IF_ERROR(write(file, json_text(index, 1) + "\n"));
  return commit_together(files);
}

Result<Plan> read_plan(const std::string& file, const WantedSizes& wanted) {
  PLIMSOLL_TRY(const std::string text, read_file(file));
  if (looks_like_plan_set(text)) {
    const auto index = parse_plan_set_index(text);
    if (!index) return forward(index, file);
    const auto size = wanted.find(index->option);
    const auto entry =
        choose(*index, size == wanted.end() ? std::nullopt : std::optional(size->second));
    if (!entry) return forward(entry, file);
    return read_member(file, *entry);
  }
  if (!wanted.empty())
    return fail(
        ErrorCode::kUsage,
        "{}: one plan, for one size: --{} has no choice; plan again with it, or make a plan "
        "set: `plimsoll plan MODEL --sizes`",
        file, wanted.begin()->first);
  auto plan = parse_plan(text);
  if (!plan) return forward(plan, file);
  return plan;
}

Result<std::vector<Plan>> read_plans(const std::string& file, const SizeRange& sizes) {
  PLIMSOLL_TRY(const std::string text, read_file(file));
  if (!looks_like_plan_set(text))
    return bad_input("{}: one plan, for one size; `plimsoll plan MODEL --sizes` makes a plan set",
                     file);
  const auto index = parse_plan_set_index(text);
  if (!index) return forward(index, file);
  if (index->option != sizes.option)
    return fail(ErrorCode::kUsage, "{}: a plan set for every {}, not {}", file, index->option,
                sizes.option);
  std::vector<Plan> out;
  for (std::int64_t size = sizes.low; size <= sizes.high; ++size) {
    const auto entry = choose(*index, size);
    if (!entry) return forward(entry, file);
    PLIMSOLL_TRY(Plan plan, read_member(file, *entry));
    out.push_back(std::move(plan));
  }
  return out;
}

}  // namespace plimsoll::plan
