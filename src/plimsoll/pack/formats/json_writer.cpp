#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/pack/formats/json.h"

namespace plimsoll::pack {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kWrittenSchema = 1;
constexpr const char* kEndNames[] = {"any", "front", "back"};

// Adds a key that is known to be new. Assignment through operator[] compares with every key before
// it, which for the offsets of 40,000 buffers took 3.3 s.
void append_new(OrderedJson& object, std::string key, OrderedJson value) {
  static_cast<OrderedJson::object_t::Container&>(object.get_ref<OrderedJson::object_t&>())
      .emplace_back(std::move(key), std::move(value));
}

// By buffer: the places of its gaps in the problem's list.
std::vector<std::vector<std::size_t>> gaps_by_buffer(const Problem& problem) {
  std::vector<std::vector<std::size_t>> out(problem.size());
  for (std::size_t g = 0; g < problem.gaps.size(); ++g)
    out[problem.gaps[g].buffer.index()].push_back(g);
  return out;
}

OrderedJson buffer_json(const Problem& problem, std::size_t i,
                        const std::vector<std::size_t>& gaps) {
  const Buffer& buffer = problem.buffers[i];
  OrderedJson out{{"id", problem.name(BufferId(i))},
                  {"lower", buffer.lifetime.begin},
                  {"upper", buffer.lifetime.end},
                  {"size", buffer.size.value}};
  if (buffer.alignment != 1) out["alignment"] = buffer.alignment;
  if (buffer.fixed) out["fixed"] = buffer.fixed->value;
  if (buffer.hint) out["hint"] = buffer.hint->value;
  for (const std::size_t g : gaps) {
    const Gap& gap = problem.gaps[g];
    OrderedJson entry{{"lower", gap.time.begin}, {"upper", gap.time.end}};
    if (!gap.window.empty()) entry["window"] = {gap.window.begin, gap.window.end};
    out["gaps"].push_back(std::move(entry));
  }
  if (!problem.ends.empty()) out["end"] = kEndNames[static_cast<std::size_t>(problem.ends[i])];
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

OrderedJson classes_json(const Problem& problem,
                         const std::vector<std::vector<BufferId>>& classes) {
  OrderedJson out = OrderedJson::array();
  for (const auto& members : classes) {
    OrderedJson entry = OrderedJson::array();
    for (const BufferId id : members) entry.push_back(problem.name(id));
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

Status check_json_names(const Problem& problem) {
  for (const std::string& id : problem.names) {
    if (!is_utf8(id))
      return bad_input(
          "buffer '{}': its name is not UTF-8, which JSON cannot hold; rename it, or write a .csv",
          plimsoll::excerpt(id));
  }
  return {};
}

Result<std::string> write_json(const Problem& problem) {
  PLIMSOLL_RETURN_IF_ERROR(check_json_names(problem));
  OrderedJson root{{"schema", kWrittenSchema}};
  for (const Memory& memory : problem.memories) {
    OrderedJson entry{{"name", memory.name}, {"cost_per_byte", memory.cost_per_byte}};
    if (memory.capacity) entry["capacity"] = memory.capacity->value;
    if (memory.slab) entry["slab"] = memory.slab->value;
    root["memories"].push_back(std::move(entry));
  }
  if (problem.clocks.streams > 0) root["streams"] = problem.clocks.streams;
  if (!problem.contiguous.empty()) root["contiguous"] = classes_json(problem, problem.contiguous);
  if (!problem.colocated.empty()) root["colocated"] = classes_json(problem, problem.colocated);
  root["buffers"] = OrderedJson::array();
  const auto gaps = gaps_by_buffer(problem);
  for (std::size_t i = 0; i < problem.size(); ++i)
    root["buffers"].push_back(buffer_json(problem, i, gaps[i]));
  return json_text(root, 1) + "\n";
}

Result<std::string> write_packing_json(const Problem& problem, const Packing& packing,
                                       bool with_offsets) {
  if (with_offsets) PLIMSOLL_RETURN_IF_ERROR(check_json_names(problem));
  OrderedJson root{{"schema", kWrittenSchema},
                   {"buffers", problem.size()},
                   {"height", packing.height().value},
                   {"lower_bound", packing.lower_bound.value},
                   {"gap", packing.gap()},
                   {"status", name(packing.status)},
                   {"seconds", packing.seconds},
                   {"method", packing.method},
                   {"moved", packing.moved}};
  if (packing.interrupted) root["interrupted"] = true;
  if (problem.memories.size() > 1) {
    root["cost"] = packing.cost;
    for (std::size_t m = 0; m < packing.heights.size(); ++m)
      root["heights"][problem.memories[m].name] = packing.heights[m].value;
  }
  if (packing.status == PackStatus::kInfeasible) {
    root["core"] = OrderedJson::array();
    for (const BufferId id : packing.core) root["core"].push_back(problem.name(id));
  }
  if (!with_offsets || packing.offsets.empty()) return json_text(root) + "\n";
  OrderedJson offsets = OrderedJson::object();
  OrderedJson memories = OrderedJson::object();
  for (std::size_t i = 0; i < packing.offsets.size(); ++i) {
    append_new(offsets, problem.name(BufferId(i)), packing.offsets[i].value);
    if (!packing.memories.empty())
      append_new(memories, problem.name(BufferId(i)), problem.memories[packing.memories[i]].name);
  }
  root["offsets"] = std::move(offsets);
  if (!memories.empty()) root["memories"] = std::move(memories);
  return json_text(root) + "\n";
}

}  // namespace plimsoll::pack
