#include "plimsoll/plan/plan_set_index.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/utf8.h"

namespace plimsoll::plan {
namespace {

using nlohmann::json;

constexpr JsonLimits kPlanSetLimits{
    .bytes = std::size_t{64} << 20, .depth = 4, .values = 4'000'000};
constexpr std::int64_t kMostNumber = std::int64_t{1} << 60;

// The value of a key, or null.
const json& field(const json& object, const char* key) {
  static const json kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

std::optional<std::int64_t> positive(const json& number) {
  if (!number.is_number_unsigned() ||
      number.get<std::uint64_t>() > static_cast<std::uint64_t>(kMostNumber))
    return std::nullopt;
  return number.get<std::int64_t>();
}

Result<PlanSetEntry> entry_of(const json& member) {
  if (!member.is_object()) return bad_input("a member should be {{size, file}}");
  const auto size = positive(field(member, "size"));
  const json& file = field(member, "file");
  if (!size || *size == 0 || !file.is_string())
    return bad_input("a member should be {{size, file}}, the size a positive whole number");
  PlanSetEntry out{*size, file.get<std::string>(), std::nullopt};
  const bool inside = out.file != "." && out.file != ".." &&
                      out.file.find('/') == std::string::npos &&
                      out.file.find('\0') == std::string::npos;
  if (out.file.empty() || !inside)
    return bad_input("member file '{}': expects a name beside the index", excerpt(out.file));
  if (const json& arena = field(member, "arena_bytes"); !arena.is_null()) {
    const auto bytes = positive(arena);
    if (!bytes)
      return bad_input("member file '{}': `arena_bytes` should be a number of bytes",
                       excerpt(out.file));
    out.arena = Bytes(*bytes);
  }
  return out;
}

}  // namespace

Result<PlanSetIndex> parse_plan_set_index(std::string_view text) {
  PLIMSOLL_TRY(const json index, parse_json(text, kPlanSetLimits));
  if (!index.is_object() || field(index, "kind") != kPlanSetKind)
    return bad_input("not a plan set");
  if (field(index, "schema") != kPlanSetSchema)
    return bad_input("an index of schema {} is expected", kPlanSetSchema);
  const json& option = field(index, "option");
  const json& members = field(index, "members");
  if ((option != "batch" && option != "seq") || !members.is_array() || members.empty())
    return bad_input("an index has an option, batch or seq, and members");
  PlanSetIndex out{option.get<std::string>(), {}};
  for (const json& member : members) {
    PLIMSOLL_TRY(PlanSetEntry entry, entry_of(member));
    out.entries.push_back(std::move(entry));
  }
  std::sort(out.entries.begin(), out.entries.end(),
            [](const PlanSetEntry& a, const PlanSetEntry& b) { return a.size < b.size; });
  for (std::size_t i = 1; i < out.entries.size(); ++i) {
    if (out.entries[i].size == out.entries[i - 1].size)
      return bad_input("two members have the size {}", out.entries[i].size);
  }
  return out;
}

bool looks_like_plan_set(std::string_view text) {
  return text.substr(0, 200).find(kPlanSetKind) != std::string_view::npos;
}

}  // namespace plimsoll::plan
