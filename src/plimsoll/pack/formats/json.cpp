#include "plimsoll/pack/formats/json.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/json_position.h"
#include "plimsoll/base/utf8.h"

namespace plimsoll::pack {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;
constexpr const char* kEnds[] = {"any", "front", "back"};
constexpr std::size_t kMostMemories = 64;  // a buffer's mask of memories has so many bits

class JsonReader {
 public:
  Result<Problem> read(std::string_view text) {
    PLIMSOLL_TRY(const Json root, parse_json(text));
    auto problem = read_root(root);
    if (!problem) return forward(problem, line_and_column(text, find_in_json(text, at_)));
    return problem;
  }

 private:
  // An error at a path like buffers[3].size, which the caller looks up in the text.
  template <typename... Args>
  tl::unexpected<Error> bad(std::string path, fmt::format_string<Args...> format, Args&&... args) {
    at_ = std::move(path);
    const std::string what = fmt::format(format, std::forward<Args>(args)...);
    return at_.empty() ? bad_input("{}", what) : bad_input("{}: {}", at_, what);
  }

  Result<Problem> read_root(const Json& root) {
    PLIMSOLL_RETURN_IF_ERROR(
        only(root, "", {"schema", "buffers", "memories", "streams", "contiguous", "colocated"}));
    std::int64_t schema = kSchema;
    PLIMSOLL_RETURN_IF_ERROR(integer(root, "schema", "", schema));
    if (schema != kSchema) return bad("schema", "{} is unknown, expected {}", schema, kSchema);
    PLIMSOLL_RETURN_IF_ERROR(read_memories(root));
    std::int64_t streams = 0;
    PLIMSOLL_RETURN_IF_ERROR(integer(root, "streams", "", streams));
    if (streams < 0 || streams > 1024) return bad("streams", "{} is outside [0, 1024]", streams);
    problem_.clocks.streams = static_cast<int>(streams);
    if (!root.contains("buffers") || !root["buffers"].is_array())
      return bad("buffers", "missing, or not a list");
    for (const Json& item : root["buffers"]) {
      PLIMSOLL_RETURN_IF_ERROR(read_buffer(item));
    }
    settle_sides();
    PLIMSOLL_RETURN_IF_ERROR(read_classes(root, "contiguous", problem_.contiguous));
    PLIMSOLL_RETURN_IF_ERROR(read_classes(root, "colocated", problem_.colocated));
    Culprit culprit;
    const Status verified = verify(problem_, &culprit);
    if (!verified) {
      at_ = path_of(culprit);
      return forward(verified);
    }
    return std::move(problem_);
  }

  static std::string path_of(const Culprit& culprit) {
    constexpr const char* kLists[] = {"", "buffers", "memories", "contiguous", "colocated"};
    if (culprit.kind == Culprit::Kind::kProblem) return "";
    std::string path =
        fmt::format("{}[{}]", kLists[static_cast<std::size_t>(culprit.kind)], culprit.index);
    if (!culprit.field.empty()) path += fmt::format(".{}", culprit.field);
    if (culprit.field.empty() || culprit.field == "gaps")
      path += fmt::format("[{}]", culprit.member);
    return path;
  }

  Status only(const Json& object, const std::string& where,
              std::initializer_list<const char*> keys) {
    if (!object.is_object())
      return bad(
          where, "expected an object{}",
          where.empty() ? R"( like {"buffers": [{"lower": 0, "upper": 3, "size": 4}]})" : "");
    for (const auto& [key, value] : object.items()) {
      if (std::find_if(keys.begin(), keys.end(), [&](const char* k) { return key == k; }) ==
          keys.end())
        return bad(where + "." + plimsoll::excerpt(key), "unknown key; there are {}",
                   fmt::join(keys, ", "));
    }
    return {};
  }

  Status integer(const Json& object, const char* key, const std::string& where, std::int64_t& out) {
    if (!object.contains(key) || object[key].is_null()) return {};
    return integer_value(object[key], where.empty() ? key : where + "." + key, out);
  }

  Status integer_value(const Json& value, const std::string& where, std::int64_t& out) {
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > kLargest;
    if (!value.is_number_integer() || huge)
      return bad(where, "{} is not a whole number up to 2^62", plimsoll::excerpt(json_text(value)));
    out = value.get<std::int64_t>();
    return {};
  }

  // -1 means free, as in the CSV.
  Status place(const Json& object, const char* key, const std::string& where,
               std::optional<Offset>& out) {
    std::int64_t value = -1;
    PLIMSOLL_RETURN_IF_ERROR(integer(object, key, where, value));
    if (value < -1) return bad(where + "." + key, "{} is negative", value);
    if (value >= 0) out = Offset(value);
    return {};
  }

  Status read_memories(const Json& root) {
    if (!root.contains("memories")) return {};
    if (!root["memories"].is_array()) return bad("memories", "not a list");
    if (root["memories"].size() > kMostMemories)
      return bad("memories", "{} memories, expected 1 to {}", root["memories"].size(),
                 kMostMemories);
    problem_.memories.clear();
    for (const Json& item : root["memories"]) {
      const std::string where = fmt::format("memories[{}]", problem_.memories.size());
      PLIMSOLL_RETURN_IF_ERROR(only(item, where, {"name", "capacity", "cost_per_byte", "slab"}));
      Memory memory;
      if (item.contains("name")) {
        if (!item["name"].is_string()) return bad(where + ".name", "not a string");
        memory.name = item["name"].get<std::string>();
      }
      for (const auto& [key, out] :
           {std::pair("capacity", &memory.capacity), {"slab", &memory.slab}}) {
        if (!item.contains(key) || item[key].is_null()) continue;
        std::int64_t value = 0;
        PLIMSOLL_RETURN_IF_ERROR(integer(item, key, where, value));
        *out = Bytes(value);
      }
      if (item.contains("cost_per_byte")) {
        if (!item["cost_per_byte"].is_number())
          return bad(where + ".cost_per_byte", "not a number");
        memory.cost_per_byte = item["cost_per_byte"].get<double>();
      }
      problem_.memories.push_back(std::move(memory));
    }
    return {};
  }

  Status read_buffer(const Json& item) {
    const std::size_t i = problem_.size();
    const std::string where = fmt::format("buffers[{}]", i);
    PLIMSOLL_RETURN_IF_ERROR(only(item, where,
                                  {"id", "lower", "upper", "size", "alignment", "fixed", "hint",
                                   "gaps", "end", "memories", "ready", "released"}));
    Buffer buffer;
    buffer.size = Bytes(-1);
    PLIMSOLL_RETURN_IF_ERROR(integer(item, "size", where, buffer.size.value));
    if (buffer.size.value < 0) return bad(where + ".size", "missing or negative");
    PLIMSOLL_RETURN_IF_ERROR(integer(item, "lower", where, buffer.lifetime.begin));
    PLIMSOLL_RETURN_IF_ERROR(integer(item, "upper", where, buffer.lifetime.end));
    PLIMSOLL_RETURN_IF_ERROR(integer(item, "alignment", where, buffer.alignment));
    PLIMSOLL_RETURN_IF_ERROR(place(item, "fixed", where, buffer.fixed));
    PLIMSOLL_RETURN_IF_ERROR(place(item, "hint", where, buffer.hint));
    std::string id = std::to_string(i);
    if (item.contains("id")) {
      if (!item["id"].is_string()) return bad(where + ".id", "not a string");
      id = item["id"].get<std::string>();
    }
    if (!index_.emplace(id, BufferId(i)).second)
      return bad(where + ".id", "'{}' is there twice", plimsoll::excerpt(id));
    problem_.names.push_back(std::move(id));
    problem_.buffers.push_back(buffer);
    PLIMSOLL_RETURN_IF_ERROR(read_gaps(item, where));
    PLIMSOLL_RETURN_IF_ERROR(read_clock(item, "ready", where, problem_.clocks.ready));
    PLIMSOLL_RETURN_IF_ERROR(read_clock(item, "released", where, problem_.clocks.released));
    PLIMSOLL_RETURN_IF_ERROR(read_end(item, where));
    return read_mask(item, where);
  }

  Status read_gaps(const Json& item, const std::string& where) {
    if (!item.contains("gaps")) return {};
    if (!item["gaps"].is_array()) return bad(where + ".gaps", "not a list");
    for (std::size_t k = 0; k < item["gaps"].size(); ++k) {
      const Json& entry = item["gaps"][k];
      const std::string here = fmt::format("{}.gaps[{}]", where, k);
      PLIMSOLL_RETURN_IF_ERROR(only(entry, here, {"lower", "upper", "window"}));
      Gap gap{BufferId(problem_.size() - 1), {}, {}};
      PLIMSOLL_RETURN_IF_ERROR(integer(entry, "lower", here, gap.time.begin));
      PLIMSOLL_RETURN_IF_ERROR(integer(entry, "upper", here, gap.time.end));
      if (entry.contains("window")) {
        const Json& window = entry["window"];
        if (!window.is_array() || window.size() != 2)
          return bad(here + ".window", "expected [low, high]");
        PLIMSOLL_RETURN_IF_ERROR(integer_value(window[0], here + ".window", gap.window.begin));
        PLIMSOLL_RETURN_IF_ERROR(integer_value(window[1], here + ".window", gap.window.end));
      }
      problem_.gaps.push_back(gap);
    }
    return {};
  }

  Status read_clock(const Json& item, const char* key, const std::string& where,
                    std::vector<std::int64_t>& out) {
    const auto streams = static_cast<std::size_t>(problem_.clocks.streams);
    if (streams == 0 && !item.contains(key)) return {};
    if (!item.contains(key) || !item[key].is_array() || item[key].size() != streams)
      return bad(where + "." + key, "expected a list of {} numbers, one per stream", streams);
    for (const Json& tick : item[key]) {
      out.push_back(0);
      PLIMSOLL_RETURN_IF_ERROR(integer_value(tick, where + "." + key, out.back()));
    }
    return {};
  }

  Status read_end(const Json& item, const std::string& where) {
    problem_.ends.push_back(ArenaEnd::kAny);
    if (!item.contains("end")) return {};
    for (int k = 0; k < 3; ++k) {
      if (item["end"] == kEnds[k]) {
        problem_.ends.back() = static_cast<ArenaEnd>(k);
        return {};
      }
    }
    return bad(where + ".end", "{} is not front, back or any",
               plimsoll::excerpt(json_text(item["end"])));
  }

  Status read_mask(const Json& item, const std::string& where) {
    problem_.may_live_in.push_back(~std::uint64_t{0});
    if (!item.contains("memories")) return {};
    if (!item["memories"].is_array()) return bad(where + ".memories", "not a list");
    problem_.may_live_in.back() = 0;
    for (const Json& entry : item["memories"]) {
      std::size_t m = 0;
      while (m < problem_.memories.size() && entry != problem_.memories[m].name) ++m;
      if (m >= problem_.memories.size())
        return bad(where + ".memories", "there is no memory {}",
                   plimsoll::excerpt(json_text(entry)));
      problem_.may_live_in.back() |= std::uint64_t{1} << m;
    }
    return {};
  }

  // Side vectors that say nothing are left out, as if they had never been written.
  void settle_sides() {
    const auto all_equal = [](const auto& values, auto value) {
      return std::all_of(values.begin(), values.end(), [&](auto v) { return v == value; });
    };
    if (all_equal(problem_.ends, ArenaEnd::kAny)) problem_.ends.clear();
    if (all_equal(problem_.may_live_in, ~std::uint64_t{0})) problem_.may_live_in.clear();
    for (std::size_t i = 0; i < problem_.size(); ++i) {
      if (problem_.names[i] != std::to_string(i)) return;
    }
    problem_.names.clear();
  }

  Status read_classes(const Json& root, const char* key, std::vector<std::vector<BufferId>>& out) {
    if (!root.contains(key)) return {};
    if (!root[key].is_array()) return bad(key, "not a list");
    for (const Json& members : root[key]) {
      out.emplace_back();
      const std::string where = fmt::format("{}[{}]", key, out.size() - 1);
      if (!members.is_array()) return bad(where, "not a list");
      for (const Json& id : members) {
        const auto found = id.is_string() ? index_.find(id.get<std::string>()) : index_.end();
        if (found == index_.end())
          return bad(fmt::format("{}[{}]", where, out.back().size()), "there is no buffer {}",
                     plimsoll::excerpt(json_text(id)));
        out.back().push_back(found->second);
      }
    }
    return {};
  }

  Problem problem_;
  std::unordered_map<std::string, BufferId> index_;
  std::string at_;  // of the error
};

}  // namespace

Result<Problem> read_json(std::string_view text) {
  return JsonReader().read(text);
}

Status take_hints_json(Problem& problem, std::string_view text) {
  PLIMSOLL_TRY(const Json root, parse_json(text));
  if (!root.is_object() || !root.contains("offsets") || !root["offsets"].is_object())
    return bad_input("{}: this is no packing: an object with the key 'offsets' is expected",
                     line_and_column(text, 0));
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const std::string id = problem.name(BufferId(i));
    const auto place = root["offsets"].find(id);
    if (place == root["offsets"].end()) continue;
    const bool huge = place->is_number_unsigned() && place->get<std::uint64_t>() > kLargest;
    if (!place->is_number_integer() || huge || place->get<std::int64_t>() < 0)
      return bad_input("{}: buffer '{}': its offset is not a whole number up to 2^62",
                       line_and_column(text, find_in_json(text, "offsets")), id);
    problem.buffers[i].hint = Offset(place->get<std::int64_t>());
  }
  return {};
}

Result<Packing> read_packing_json(const Problem& problem, std::string_view text) {
  PLIMSOLL_TRY(const Json root, parse_json(text));
  const auto here = [&](std::string_view path) {
    return line_and_column(text, find_in_json(text, path));
  };
  if (!root.is_object() || !root.contains("offsets") || !root["offsets"].is_object())
    return bad_input("{}: this is no packing: an object with the key 'offsets' is expected",
                     here("offsets"));
  Packing packing;
  packing.status = PackStatus::kFeasible;
  const bool with_memories = root.contains("memories") && root["memories"].is_object();
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const std::string id = problem.name(BufferId(i));
    const auto place = root["offsets"].find(id);
    if (place == root["offsets"].end() || !place->is_number_integer())
      return bad_input("{}: buffer '{}': the packing has no offset for it", here("offsets"), id);
    packing.offsets.push_back(Offset(place->get<std::int64_t>()));
    if (!with_memories) continue;
    const auto home = root["memories"].find(id);
    std::size_t m = 0;
    while (m < problem.memories.size() &&
           (home == root["memories"].end() || *home != problem.memories[m].name))
      ++m;
    if (m == problem.memories.size())
      return bad_input("{}: buffer '{}': lives in no known memory", here("memories"), id);
    packing.memories.push_back(static_cast<std::uint8_t>(m));
  }
  return packing;
}

}  // namespace plimsoll::pack
