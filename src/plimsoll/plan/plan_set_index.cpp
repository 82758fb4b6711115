#include "plimsoll/plan/plan_set_index.h"

#include <algorithm>

#include <fmt/ranges.h>
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

// One number for one option, a list of as many for several.
std::optional<std::vector<std::int64_t>> sizes_of(const json& size, std::size_t options) {
  std::vector<std::int64_t> out;
  const auto take = [&](const json& one) {
    const auto number = positive(one);
    if (number && *number > 0) out.push_back(*number);
  };
  if (size.is_array() && options > 1) {
    for (const json& one : size) take(one);
  } else if (options == 1) {
    take(size);
  }
  const bool all = out.size() == options && (!size.is_array() || size.size() == options);
  return all ? std::optional(std::move(out)) : std::nullopt;
}

Result<PlanSetEntry> entry_of(const json& member, std::size_t options) {
  if (!member.is_object()) return bad_input("a member should be {{size, file}}");
  auto sizes = sizes_of(field(member, "size"), options);
  const json& file = field(member, "file");
  if (!sizes || !file.is_string())
    return bad_input(
        "a member should be {{size, file}}, the size a positive whole number for each option");
  PlanSetEntry out{*std::move(sizes), file.get<std::string>(), std::nullopt};
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

// `option`, or `options`; empty where there are none, or others than batch and seq.
std::vector<std::string> options_of(const json& index) {
  std::vector<std::string> out;
  const json& several = field(index, "options");
  const auto take = [&](const json& one) {
    if (one == "batch" || one == "seq") out.push_back(one.get<std::string>());
  };
  if (several.is_array()) {
    for (const json& one : several) take(one);
    if (out.size() != several.size()) out.clear();
  } else {
    take(field(index, "option"));
  }
  if (out.size() > 2 || (out.size() == 2 && out[0] == out[1])) out.clear();
  return out;
}

}  // namespace

Result<PlanSetIndex> parse_plan_set_index(std::string_view text) {
  PLIMSOLL_TRY(const json index, parse_json(text, kPlanSetLimits));
  if (!index.is_object() || field(index, "kind") != kPlanSetKind)
    return bad_input("not a plan set");
  if (field(index, "schema") != kPlanSetSchema)
    return bad_input("an index of schema {} is expected", kPlanSetSchema);
  const json& members = field(index, "members");
  PlanSetIndex out{options_of(index), {}};
  if (out.options.empty() || !members.is_array() || members.empty())
    return bad_input("an index has an option, batch or seq, or several options, and members");
  for (const json& member : members) {
    PLIMSOLL_TRY(PlanSetEntry entry, entry_of(member, out.options.size()));
    out.entries.push_back(std::move(entry));
  }
  std::sort(out.entries.begin(), out.entries.end(),
            [](const PlanSetEntry& a, const PlanSetEntry& b) { return a.sizes < b.sizes; });
  for (std::size_t i = 1; i < out.entries.size(); ++i) {
    if (out.entries[i].sizes == out.entries[i - 1].sizes)
      return bad_input("two members have the size {}", fmt::join(out.entries[i].sizes, " x "));
  }
  return out;
}

bool looks_like_plan_set(std::string_view text) {
  return text.substr(0, 200).find(kPlanSetKind) != std::string_view::npos;
}

}  // namespace plimsoll::plan
