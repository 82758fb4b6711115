#include "plimsoll/pack/json.h"

#include <algorithm>
#include <unordered_map>

#include <nlohmann/json.hpp>

namespace plimsoll::pack {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr const char* kEnds[] = {"any", "front", "back"};

class Reader {
 public:
  Result<Problem> read(std::string_view text) {
    const Json root = Json::parse(text, nullptr, false);
    if (root.is_discarded()) return bad_input("this is not valid JSON");
    PLIMSOLL_RETURN_IF_ERROR(only(root, "the problem", {"schema", "buffers", "memories", "streams",
                                                        "contiguous", "colocated"}));
    std::int64_t schema = kSchema;
    PLIMSOLL_RETURN_IF_ERROR(integer(root, "schema", "", schema));
    if (schema != kSchema) return bad_input("schema: {} is unknown, expected {}", schema, kSchema);
    PLIMSOLL_RETURN_IF_ERROR(read_memories(root));
    std::int64_t streams = 0;
    PLIMSOLL_RETURN_IF_ERROR(integer(root, "streams", "", streams));
    if (streams < 0 || streams > 1024) return bad_input("streams: {} is outside [0, 1024]", streams);
    problem_.clocks.streams = static_cast<int>(streams);
    if (!root.contains("buffers") || !root["buffers"].is_array())
      return bad_input("buffers: missing, or not a list");
    for (const Json& item : root["buffers"]) {
      PLIMSOLL_RETURN_IF_ERROR(read_buffer(item));
    }
    settle_sides();
    PLIMSOLL_RETURN_IF_ERROR(read_classes(root, "contiguous", problem_.contiguous));
    PLIMSOLL_RETURN_IF_ERROR(read_classes(root, "colocated", problem_.colocated));
    PLIMSOLL_RETURN_IF_ERROR(verify(problem_));
    return std::move(problem_);
  }

 private:
  static Status only(const Json& object, const std::string& where,
                     std::initializer_list<const char*> keys) {
    if (!object.is_object()) return bad_input("{}: expected an object", where);
    for (const auto& [key, value] : object.items()) {
      if (std::find_if(keys.begin(), keys.end(), [&](const char* k) { return key == k; }) == keys.end())
        return bad_input("{}: unknown key '{}'", where, key.substr(0, 40));
    }
    return {};
  }

  static Status integer(const Json& object, const char* key, const std::string& where,
                        std::int64_t& out) {
    if (!object.contains(key) || object[key].is_null()) return {};
    return integer_value(object[key], where + key, out);
  }

  static Status integer_value(const Json& value, const std::string& where, std::int64_t& out) {
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > kLargest;
    if (!value.is_number_integer() || huge)
      return bad_input("{}: {} is not a whole number up to 2^62", where, value.dump().substr(0, 40));
    out = value.get<std::int64_t>();
    return {};
  }

  static Status place(const Json& object, const char* key, const std::string& where,
                      std::optional<Offset>& out) {
    std::int64_t value = -1;
    PLIMSOLL_RETURN_IF_ERROR(integer(object, key, where, value));
    if (value >= 0) out = Offset(value);
    return {};
  }

  Status read_memories(const Json& root) {
    if (!root.contains("memories")) return {};
    if (!root["memories"].is_array()) return bad_input("memories: not a list");
    problem_.memories.clear();
    for (const Json& item : root["memories"]) {
      const std::string where = fmt::format("memories[{}].", problem_.memories.size());
      PLIMSOLL_RETURN_IF_ERROR(only(item, where, {"name", "capacity", "cost_per_byte", "slab"}));
      Memory memory;
      if (item.contains("name")) {
        if (!item["name"].is_string()) return bad_input("{}name: not a string", where);
        memory.name = item["name"].get<std::string>();
      }
      for (const auto& [key, out] : {std::pair("capacity", &memory.capacity), {"slab", &memory.slab}}) {
        std::int64_t value = -1;
        PLIMSOLL_RETURN_IF_ERROR(integer(item, key, where, value));
        if (value >= 0) *out = Bytes(value);
      }
      if (item.contains("cost_per_byte")) {
        if (!item["cost_per_byte"].is_number()) return bad_input("{}cost_per_byte: not a number", where);
        memory.cost_per_byte = item["cost_per_byte"].get<double>();
      }
      problem_.memories.push_back(std::move(memory));
    }
    return {};
  }

  Status read_buffer(const Json& item) {
    const std::size_t i = problem_.size();
    const std::string where = fmt::format("buffers[{}].", i);
    PLIMSOLL_RETURN_IF_ERROR(only(item, where, {"id", "lower", "upper", "size", "alignment", "fixed",
                                                "hint", "gaps", "end", "memories", "ready",
                                                "released"}));
    Buffer buffer;
    buffer.size = Bytes(-1);
    PLIMSOLL_RETURN_IF_ERROR(integer(item, "size", where, buffer.size.value));
    if (buffer.size.value < 0) return bad_input("{}size: missing or negative", where);
    PLIMSOLL_RETURN_IF_ERROR(integer(item, "lower", where, buffer.lifetime.begin));
    PLIMSOLL_RETURN_IF_ERROR(integer(item, "upper", where, buffer.lifetime.end));
    PLIMSOLL_RETURN_IF_ERROR(integer(item, "alignment", where, buffer.alignment));
    PLIMSOLL_RETURN_IF_ERROR(place(item, "fixed", where, buffer.fixed));
    PLIMSOLL_RETURN_IF_ERROR(place(item, "hint", where, buffer.hint));
    std::string id = std::to_string(i);
    if (item.contains("id")) {
      if (!item["id"].is_string()) return bad_input("{}id: not a string", where);
      id = item["id"].get<std::string>();
    }
    if (!index_.emplace(id, BufferId(i)).second)
      return bad_input("{}id: '{}' is there twice", where, id.substr(0, 40));
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
    if (!item["gaps"].is_array()) return bad_input("{}gaps: not a list", where);
    for (const Json& entry : item["gaps"]) {
      PLIMSOLL_RETURN_IF_ERROR(only(entry, where + "gaps", {"lower", "upper", "window"}));
      Gap gap{BufferId(problem_.size() - 1), {}, {}};
      PLIMSOLL_RETURN_IF_ERROR(integer(entry, "lower", where + "gaps.", gap.time.begin));
      PLIMSOLL_RETURN_IF_ERROR(integer(entry, "upper", where + "gaps.", gap.time.end));
      if (entry.contains("window")) {
        const Json& window = entry["window"];
        if (!window.is_array() || window.size() != 2)
          return bad_input("{}gaps.window: expected [low, high]", where);
        PLIMSOLL_RETURN_IF_ERROR(integer_value(window[0], where + "gaps.window", gap.window.begin));
        PLIMSOLL_RETURN_IF_ERROR(integer_value(window[1], where + "gaps.window", gap.window.end));
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
      return bad_input("{}{}: expected a list of {} numbers, one per stream", where, key, streams);
    for (const Json& tick : item[key]) {
      out.push_back(0);
      PLIMSOLL_RETURN_IF_ERROR(integer_value(tick, where + key, out.back()));
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
    return bad_input("{}end: {} is not front, back or any", where, item["end"].dump().substr(0, 40));
  }

  Status read_mask(const Json& item, const std::string& where) {
    problem_.may_live_in.push_back(~std::uint64_t{0});
    if (!item.contains("memories")) return {};
    if (!item["memories"].is_array()) return bad_input("{}memories: not a list", where);
    problem_.may_live_in.back() = 0;
    for (const Json& entry : item["memories"]) {
      std::size_t m = 0;
      while (m < problem_.memories.size() && entry != problem_.memories[m].name) ++m;
      if (m >= std::min<std::size_t>(64, problem_.memories.size()))
        return bad_input("{}memories: there is no memory {}", where, entry.dump().substr(0, 40));
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
    if (!root[key].is_array()) return bad_input("{}: not a list", key);
    for (const Json& members : root[key]) {
      out.emplace_back();
      if (!members.is_array()) return bad_input("{}[{}]: not a list", key, out.size() - 1);
      for (const Json& id : members) {
        const auto found = id.is_string() ? index_.find(id.get<std::string>()) : index_.end();
        if (found == index_.end())
          return bad_input("{}[{}]: there is no buffer {}", key, out.size() - 1,
                           id.dump().substr(0, 40));
        out.back().push_back(found->second);
      }
    }
    return {};
  }

  Problem problem_;
  std::unordered_map<std::string, BufferId> index_;
};

Json buffer_json(const Problem& problem, std::size_t i) {
  const Buffer& buffer = problem.buffers[i];
  Json out{{"id", problem.name(BufferId(i))},
           {"lower", buffer.lifetime.begin},
           {"upper", buffer.lifetime.end},
           {"size", buffer.size.value}};
  if (buffer.alignment != 1) out["alignment"] = buffer.alignment;
  if (buffer.fixed) out["fixed"] = buffer.fixed->value;
  if (buffer.hint) out["hint"] = buffer.hint->value;
  for (const Gap& gap : problem.gaps) {
    if (gap.buffer != BufferId(i)) continue;
    Json entry{{"lower", gap.time.begin}, {"upper", gap.time.end}};
    if (!gap.window.empty()) entry["window"] = {gap.window.begin, gap.window.end};
    out["gaps"].push_back(std::move(entry));
  }
  if (!problem.ends.empty()) out["end"] = kEnds[static_cast<std::size_t>(problem.ends[i])];
  for (std::size_t m = 0; !problem.may_live_in.empty() && m < problem.memories.size(); ++m) {
    if (problem.may_live_in[i] >> m & 1) out["memories"].push_back(problem.memories[m].name);
  }
  const auto streams = static_cast<std::size_t>(problem.clocks.streams);
  for (std::size_t s = 0; s < streams; ++s) {
    out["ready"].push_back(problem.clocks.ready[i * streams + s]);
    out["released"].push_back(problem.clocks.released[i * streams + s]);
  }
  return out;
}

Json classes_json(const Problem& problem, const std::vector<std::vector<BufferId>>& classes) {
  Json out = Json::array();
  for (const auto& members : classes) {
    Json entry = Json::array();
    for (const BufferId id : members) entry.push_back(problem.name(id));
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Result<Problem> read_json(std::string_view text) { return Reader().read(text); }

std::string write_json(const Problem& problem) {
  Json root{{"schema", kSchema}};
  for (const Memory& memory : problem.memories) {
    Json entry{{"name", memory.name}, {"cost_per_byte", memory.cost_per_byte}};
    if (memory.capacity) entry["capacity"] = memory.capacity->value;
    if (memory.slab) entry["slab"] = memory.slab->value;
    root["memories"].push_back(std::move(entry));
  }
  if (problem.clocks.streams > 0) root["streams"] = problem.clocks.streams;
  if (!problem.contiguous.empty()) root["contiguous"] = classes_json(problem, problem.contiguous);
  if (!problem.colocated.empty()) root["colocated"] = classes_json(problem, problem.colocated);
  root["buffers"] = Json::array();
  for (std::size_t i = 0; i < problem.size(); ++i) root["buffers"].push_back(buffer_json(problem, i));
  return root.dump(1) + "\n";
}

std::string write_packing_json(const Problem& problem, const Packing& packing, bool with_offsets) {
  Json root{{"schema", kSchema},
            {"buffers", problem.size()},
            {"height", packing.height().value},
            {"lower_bound", packing.lower_bound.value},
            {"gap", packing.gap()},
            {"status", name(packing.status)},
            {"seconds", packing.seconds},
            {"method", packing.method},
            {"moved", packing.moved}};
  if (problem.memories.size() > 1) {
    root["cost"] = packing.cost;
    for (std::size_t m = 0; m < packing.heights.size(); ++m)
      root["heights"][problem.memories[m].name] = packing.heights[m].value;
  }
  if (packing.status == PackStatus::kInfeasible) {
    root["core"] = Json::array();
    for (const BufferId id : packing.core) root["core"].push_back(problem.name(id));
  }
  for (std::size_t i = 0; with_offsets && i < packing.offsets.size(); ++i) {
    const std::string id = problem.name(BufferId(i));
    root["offsets"][id] = packing.offsets[i].value;
    if (!packing.memories.empty()) root["memories"][id] = problem.memories[packing.memories[i]].name;
  }
  return root.dump() + "\n";
}

Result<Packing> read_packing_json(const Problem& problem, std::string_view text) {
  const nlohmann::json root = nlohmann::json::parse(text, nullptr, false);
  if (!root.is_object() || !root.contains("offsets") || !root["offsets"].is_object())
    return bad_input("this is no packing: an object with the key 'offsets' is expected");
  Packing packing;
  packing.status = PackStatus::kFeasible;
  for (std::size_t i = 0; i < problem.size(); ++i) {
    const std::string id = problem.name(BufferId(i));
    const auto place = root["offsets"].find(id);
    if (place == root["offsets"].end() || !place->is_number_integer())
      return bad_input("buffer '{}': the packing has no offset for it", id);
    packing.offsets.push_back(Offset(place->get<std::int64_t>()));
    if (!root.contains("memories") || !root["memories"].is_object()) continue;
    std::size_t m = 0;
    while (m < problem.memories.size() && root["memories"].value(id, "") != problem.memories[m].name) ++m;
    if (m == problem.memories.size()) return bad_input("buffer '{}': lives in no known memory", id);
    packing.memories.push_back(static_cast<std::uint8_t>(m));
  }
  return packing;
}

}  // namespace plimsoll::pack
