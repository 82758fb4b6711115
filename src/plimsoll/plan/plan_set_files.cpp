#include "plimsoll/plan/plan_set_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/file.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/output_file.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/plan/plan_set_index.h"

namespace plimsoll::plan {
namespace {

// "plan.json" for batch 8: "plan.batch8.json"; for two options "plan.batch8.seq16.json".
std::string member_file(const std::string& index, const SizeGrid& sizes,
                        const std::vector<std::int64_t>& at) {
  const std::size_t dot = index.ends_with(".json") ? index.size() - 5 : index.size();
  std::string out = index.substr(0, dot);
  for (std::size_t r = 0; r < at.size(); ++r)
    out += fmt::format(".{}{}", sizes.ranges[r].option, at[r]);
  return out + index.substr(dot);
}

// Of an option that is not wanted, the largest.
Result<PlanSetEntry> choose(const PlanSetIndex& index, const WantedSizes& wanted) {
  for (const auto& [option, size] : wanted) {
    if (std::ranges::find(index.options, option) == index.options.end())
      return fail(ErrorCode::kUsage, "--{} {}: a plan set for every {}", option, size,
                  fmt::join(index.options, " and "));
  }
  std::vector<std::int64_t> asked = index.entries.back().sizes;
  for (std::size_t o = 0; o < asked.size(); ++o) {
    const auto size = wanted.find(index.options[o]);
    if (size != wanted.end()) asked[o] = size->second;
  }
  const auto found = std::ranges::find(index.entries, asked, &PlanSetEntry::sizes);
  if (found != index.entries.end()) return *found;
  return fail(ErrorCode::kUsage, "--{} {}: the plan set has {} to {}",
              fmt::join(index.options, ", --"), fmt::join(asked, ", "),
              fmt::join(index.entries.front().sizes, " x "),
              fmt::join(index.entries.back().sizes, " x "));
}

// One option as "option": what readers of older files know.
nlohmann::ordered_json index_for(const SizeGrid& sizes) {
  nlohmann::ordered_json out{{"kind", kPlanSetKind}, {"schema", kPlanSetSchema}};
  if (sizes.ranges.size() == 1) {
    out["option"] = sizes.ranges.front().option;
  } else {
    for (const SizeRange& range : sizes.ranges) out["options"].push_back(range.option);
  }
  out["members"] = nlohmann::ordered_json::array();
  return out;
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

Status write_plan_set(const std::string& file, const SizeGrid& sizes,
                      const std::vector<PlanSetMember>& plans) {
  if (!is_utf8(std::filesystem::path(file).filename().string())) {
    return fail(
        ErrorCode::kUsage,
        "{}: the index of a plan set is JSON and names its members in UTF-8; choose such a name",
        excerpt(file));
  }
  nlohmann::ordered_json index = index_for(sizes);
  std::vector<OutputFile> files;
  const auto write = [&](const std::string& name, const std::string& content) -> Status {
    PLIMSOLL_TRY(OutputFile out, OutputFile::create(name));
    PLIMSOLL_RETURN_IF_ERROR(out.write(content));
    PLIMSOLL_RETURN_IF_ERROR(out.finish());
    files.push_back(std::move(out));
    return {};
  };
  for (const PlanSetMember& member : plans) {
    const std::string name = member_file(file, sizes, member.sizes);
    PLIMSOLL_RETURN_IF_ERROR(write(name, to_json(member.plan)));
    const nlohmann::ordered_json size = member.sizes.size() == 1
                                            ? nlohmann::ordered_json(member.sizes.front())
                                            : nlohmann::ordered_json(member.sizes);
    index["members"].push_back({{"size", size},
                                {"file", std::filesystem::path(name).filename().string()},
                                {"arena_bytes", member.plan.arena_bytes().value},
                                {"shared", member.shared()},
                                {"places", plan::name(member.places)}});
  }
  PLIMSOLL_RETURN_IF_ERROR(write(file, json_text(index, 1) + "\n"));
  return commit_together(files);
}

Result<Plan> read_plan(const std::string& file, const WantedSizes& wanted) {
  PLIMSOLL_TRY(const std::string text, read_file(file));
  if (looks_like_plan_set(text)) {
    const auto index = parse_plan_set_index(text);
    if (!index) return forward(index, file);
    const auto entry = choose(*index, wanted);
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

Result<std::vector<Plan>> read_plans(const std::string& file, const SizeGrid& sizes) {
  PLIMSOLL_TRY(const std::string text, read_file(file));
  if (!looks_like_plan_set(text))
    return bad_input("{}: one plan, for one size; `plimsoll plan MODEL --sizes` makes a plan set",
                     file);
  const auto index = parse_plan_set_index(text);
  if (!index) return forward(index, file);
  std::vector<Plan> out;
  for (std::int64_t m = 0; m < sizes.members(); ++m) {
    const std::vector<std::int64_t> at = sizes.at(m);
    WantedSizes wanted;
    for (std::size_t r = 0; r < at.size(); ++r) wanted.emplace(sizes.ranges[r].option, at[r]);
    const auto entry = choose(*index, wanted);
    if (!entry) return forward(entry, file);
    PLIMSOLL_TRY(Plan plan, read_member(file, *entry));
    out.push_back(std::move(plan));
  }
  return out;
}

}  // namespace plimsoll::plan
