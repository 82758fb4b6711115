#include "plimsoll/plan/plan_file.h"

#include <array>
#include <limits>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/ir/text.h"

namespace plimsoll::plan {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kKind = "plimsoll plan";
constexpr JsonLimits kPlanLimits{.depth = 8, .values = 32'000'000};

ordered_json slot_json(const Slot& slot) {
  if (!slot.buffer.valid()) return nullptr;
  return ordered_json::array({slot.buffer.value, slot.offset.value});
}

ordered_json slots_json(const std::vector<Slot>& slots) {
  ordered_json out = ordered_json::array();
  for (const Slot& slot : slots) out.push_back(slot_json(slot));
  return out;
}

ordered_json step_json(const PlanStep& step) {
  ordered_json out{{"do", name(step.kind)}};
  if (step.stream != 0) out["stream"] = step.stream;
  if (step.node.valid()) out["node"] = step.node.value;
  if (step.value.valid()) out["value"] = step.value.value;
  if (!step.codec.empty()) out["codec"] = step.codec;
  out["in"] = slots_json(step.inputs);
  out["out"] = slots_json(step.outputs);
  if (step.scratch.buffer.valid()) out["scratch"] = slot_json(step.scratch);
  if (!step.waits.empty()) out["waits"] = step.waits;
  out["seconds"] = step.seconds;
  return out;
}

ordered_json places_json(const std::vector<ValueSlot>& places) {
  ordered_json out = ordered_json::array();
  for (const auto& [value, slot] : places)
    out.push_back(ordered_json::array({value.value, slot.buffer.value, slot.offset.value}));
  return out;
}

ordered_json origin_json(const WeightsOrigin& origin) {
  ordered_json out{{"model", origin.model}, {"files", ordered_json::array()}};
  for (const WeightsOrigin::File& file : origin.files) {
    out["files"].push_back({{"name", file.name}, {"bytes", file.bytes.value}, {"hash", file.hash}});
  }
  ordered_json& import = out["import"] = {{"train", origin.training}, {"untie", origin.untied}};
  if (origin.batch) import["batch"] = *origin.batch;
  if (origin.seq) import["seq"] = *origin.seq;
  for (const auto& [name, size] : origin.dims) import["dims"][name] = size;
  return out;
}

// Reads typed fields out of JSON that may hold anything; remembers the first thing that was wrong.
class Reader {
 public:
  std::int64_t integer(const json& object, const char* key, std::int64_t low, std::int64_t high) {
    return integer_of(field(object, key), key, low, high);
  }

  std::int64_t integer_of(const json& value, const char* what, std::int64_t low,
                          std::int64_t high) {
    if (value.is_number_integer()) {
      if (value.is_number_unsigned() &&
          value.get<std::uint64_t>() >
              static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        complain("'{}' is out of range", what);
        return low;
      }
      const auto number = value.get<std::int64_t>();
      if (number >= low && number <= high) return number;
    }
    complain("'{}' should be an integer from {} to {}", what, low, high);
    return low;
  }

  double real(const json& object, const char* key) {
    const json& value = field(object, key);
    if (value.is_number() && value.get<double>() >= 0) return value.get<double>();
    complain("'{}' should be a number, 0 or more", key);
    return 0;
  }

  std::string text(const json& object, const char* key) {
    const json& value = field(object, key);
    if (value.is_string()) return value.get<std::string>();
    complain("'{}' should be a string", key);
    return {};
  }

  bool boolean(const json& object, const char* key) {
    const json& value = field(object, key);
    if (value.is_boolean()) return value.get<bool>();
    complain("'{}' should be true or false", key);
    return false;
  }

  const json& list(const json& object, const char* key) {
    static const json kEmpty = json::array();
    const json& value = field(object, key);
    if (value.is_array()) return value;
    complain("'{}' should be a list", key);
    return kEmpty;
  }

  const json& field(const json& object, const char* key) {
    static const json kNothing;
    if (!object.is_object()) {
      complain("'{}' should stand in an object", key);
      return kNothing;
    }
    const auto place = object.find(key);
    return place == object.end() ? kNothing : *place;
  }

  template <typename... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    if (error_.empty()) error_ = fmt::format(format, std::forward<Args>(args)...);
  }

  const std::string& error() const { return error_; }

 private:
  std::string error_;
};

template <typename Enum>
Enum parse_enum(Reader& reader, const std::string& text, int count, const char* what) {
  for (int i = 0; i < count; ++i) {
    if (name(static_cast<Enum>(i)) == text) return static_cast<Enum>(i);
  }
  reader.complain("'{}' is no {}", excerpt(text), what);
  return static_cast<Enum>(0);
}

class PlanReader {
 public:
  Result<Plan> read(const json& root) {
    if (reader_.text(root, "kind") != kKind) return bad_input("not a plan file");
    const std::int64_t schema = reader_.integer(root, "schema", 0, 1 << 20);
    if (schema != kPlanSchema)
      return bad_input("plan file has schema {}, this program reads {}", schema, kPlanSchema);
    auto graph = ir::parse_text(reader_.text(root, "graph"));
    if (!graph) return forward(graph, "graph");
    plan_.graph = std::move(*graph);
    read_environment(reader_.field(root, "environment"));
    for (const json& arena : reader_.list(root, "arenas")) {
      plan_.arenas.push_back(
          {reader_.text(arena, "name"), Bytes(reader_.integer(arena, "bytes", 0, kMost))});
    }
    for (const json& buffer : reader_.list(root, "buffers")) read_buffer(buffer);
    for (const json& step : reader_.list(root, "steps")) read_step(step);
    if (!reader_.field(root, "contiguous").is_null()) {
      for (const json& group : reader_.list(root, "contiguous")) read_group(group);
    }
    plan_.sources = read_places(reader_.list(root, "sources"));
    plan_.results = read_places(reader_.list(root, "results"));
    const json& proof = reader_.field(root, "proof");
    plan_.proof.load = Bytes(reader_.integer(proof, "load_bytes", 0, kMost));
    plan_.proof.lower_bound = Bytes(reader_.integer(proof, "lower_bound", 0, kMost));
    plan_.proof.optimal = reader_.boolean(proof, "optimal");
    if (!reader_.field(root, "weights").is_null()) read_origin(reader_.field(root, "weights"));
    if (root.contains("engines")) read_engines(reader_.field(root, "engines"));
    plan_.budget = Bytes(reader_.integer(root, "budget_bytes", 0, kMost));
    if (root.contains("alignment"))
      plan_.alignment = Bytes(reader_.integer(root, "alignment", 1, kMost));
    plan_.predicted_seconds = reader_.real(root, "predicted_seconds");
    check_lifetimes();
    if (!reader_.error().empty()) return bad_input("plan file: {}", reader_.error());
    return std::move(plan_);
  }

 private:
  static constexpr std::int64_t kMost = std::int64_t{1} << 60;

  void read_environment(const json& environment) {
    plan_.environment.device = reader_.text(environment, "device");
    plan_.environment.threads =
        static_cast<int>(reader_.integer(environment, "threads", 0, 1 << 16));
    plan_.environment.instruction_set = reader_.text(environment, "instruction_set");
    plan_.environment.kernel_library = reader_.text(environment, "kernel_library");
  }

  void read_engines(const json& from) {
    if (!from.is_object()) return reader_.complain("'engines' should be an object");
    for (const auto& [signature, engine] : from.items()) {
      if (!engine.is_string())
        return reader_.complain("the engine of '{}' should be a string", excerpt(signature));
      plan_.engines.emplace(signature, engine.get<std::string>());
    }
  }

  void read_origin(const json& from) {
    WeightsOrigin& origin = plan_.weights.emplace();
    origin.model = reader_.text(from, "model");
    for (const json& file : reader_.list(from, "files")) {
      origin.files.push_back({reader_.text(file, "name"),
                              Bytes(reader_.integer(file, "bytes", 0, kMost)),
                              reader_.text(file, "hash")});
    }
    const json& import = reader_.field(from, "import");
    origin.training = reader_.boolean(import, "train");
    origin.untied = reader_.boolean(import, "untie");
    if (!reader_.field(import, "batch").is_null())
      origin.batch = reader_.integer(import, "batch", 0, kMost);
    if (!reader_.field(import, "seq").is_null())
      origin.seq = reader_.integer(import, "seq", 0, kMost);
    const json& dims = reader_.field(import, "dims");
    if (dims.is_null()) return;
    if (!dims.is_object()) return reader_.complain("'dims' should be an object");
    for (const auto& [name, size] : dims.items())
      origin.dims.emplace(name, reader_.integer_of(size, "dims", 0, kMost));
  }

  // Reports index by step: no lifetime may lead past the last. Sources are alive for a step even if
  // none runs.
  void check_lifetimes() {
    const auto steps = static_cast<std::int32_t>(std::max<std::size_t>(plan_.steps.size(), 1));
    for (const PlanBuffer& buffer : plan_.buffers) {
      const Interval<Step>& life = buffer.lifetime;
      if (life.begin <= life.end && life.end.value <= steps) continue;
      reader_.complain("buffer '{}' is alive in steps [{}, {}), the plan has {}",
                       excerpt(buffer.name), life.begin.value, life.end.value, plan_.steps.size());
    }
  }

  // An id of one of `things`.
  template <typename Id, typename Thing>
  Id read_id(const json& from, const char* what, const std::vector<Thing>& things) {
    const auto last = static_cast<std::int64_t>(things.size()) - 1;
    return Id(static_cast<std::size_t>(reader_.integer_of(from, what, 0, last)));
  }
  // The same of a field that need not be there.
  template <typename Id, typename Thing>
  void read_id_if_there(const json& from, const char* key, const std::vector<Thing>& things,
                        Id& id) {
    const json& value = reader_.field(from, key);
    if (!value.is_null()) id = read_id<Id>(value, key, things);
  }

  void read_buffer(const json& from) {
    PlanBuffer buffer;
    buffer.name = reader_.text(from, "name");
    read_id_if_there(from, "value", plan_.graph.values, buffer.value);
    buffer.bytes = Bytes(reader_.integer(from, "bytes", 0, kMost));
    buffer.use = parse_enum<Use>(reader_, reader_.text(from, "use"), kUseCount, "use of a buffer");
    buffer.arena = static_cast<std::uint8_t>(reader_.integer(from, "arena", 0, 7));
    buffer.offset = Offset(reader_.integer(from, "offset", 0, kMost));
    buffer.lifetime = {Step(reader_.integer(from, "first", 0, kMaxSteps)),
                       Step(reader_.integer(from, "end", 0, kMaxSteps))};
    plan_.buffers.push_back(std::move(buffer));
  }

  Slot read_slot(const json& from) {
    if (from.is_null()) return {};
    if (!from.is_array() || from.size() != 2) {
      reader_.complain("a slot should be [buffer, offset]");
      return {};
    }
    return {read_id<BufferId>(from[0], "buffer", plan_.buffers),
            Bytes(reader_.integer_of(from[1], "offset", 0, kMost))};
  }

  void read_group(const json& from) {
    std::vector<BufferId> group;
    if (!from.is_array()) reader_.complain("a contiguous group should be a list of buffers");
    for (const json& member : from)
      group.push_back(read_id<BufferId>(member, "buffer", plan_.buffers));
    plan_.contiguous.push_back(std::move(group));
  }

  void read_step(const json& from) {
    PlanStep step;
    step.kind =
        parse_enum<StepKind>(reader_, reader_.text(from, "do"), kStepKindCount, "kind of step");
    if (!reader_.field(from, "stream").is_null())
      step.stream = static_cast<std::uint8_t>(reader_.integer(from, "stream", 0, 7));
    read_id_if_there(from, "node", plan_.graph.nodes, step.node);
    read_id_if_there(from, "value", plan_.graph.values, step.value);
    if (!reader_.field(from, "codec").is_null()) step.codec = reader_.text(from, "codec");
    for (const json& slot : reader_.list(from, "in")) step.inputs.push_back(read_slot(slot));
    for (const json& slot : reader_.list(from, "out")) step.outputs.push_back(read_slot(slot));
    step.scratch = read_slot(reader_.field(from, "scratch"));
    if (!reader_.field(from, "waits").is_null()) {
      for (const json& wait : reader_.list(from, "waits"))
        step.waits.push_back(
            static_cast<std::uint32_t>(reader_.integer_of(wait, "waits", 0, kMaxSteps)));
    }
    step.seconds = reader_.real(from, "seconds");
    plan_.steps.push_back(std::move(step));
  }

  std::vector<ValueSlot> read_places(const json& list) {
    std::vector<ValueSlot> out;
    for (const json& from : list) {
      if (!from.is_array() || from.size() != 3) {
        reader_.complain("a place should be [value, buffer, offset]");
        break;
      }
      const auto value = read_id<ValueId>(from[0], "value", plan_.graph.values);
      out.push_back({value, read_slot(json::array({from[1], from[2]}))});
    }
    return out;
  }

  static constexpr std::int64_t kMaxSteps = std::numeric_limits<std::int32_t>::max() - 1;
  Reader reader_;
  Plan plan_;
};

}  // namespace

std::string to_json(const Plan& plan) {
  ordered_json root{{"kind", kKind}, {"schema", kPlanSchema}};
  root["environment"] = {{"device", plan.environment.device},
                         {"threads", plan.environment.threads},
                         {"instruction_set", plan.environment.instruction_set},
                         {"kernel_library", plan.environment.kernel_library}};
  root["budget_bytes"] = plan.budget.value;
  if (plan.alignment != schedule::kTensorAlignment) root["alignment"] = plan.alignment.value;
  root["predicted_seconds"] = plan.predicted_seconds;
  root["proof"] = {{"load_bytes", plan.proof.load.value},
                   {"lower_bound", plan.proof.lower_bound.value},
                   {"optimal", plan.proof.optimal}};
  if (plan.weights) root["weights"] = origin_json(*plan.weights);
  if (!plan.engines.empty()) root["engines"] = plan.engines;
  root["arenas"] = ordered_json::array();
  for (const Arena& arena : plan.arenas)
    root["arenas"].push_back({{"name", arena.name}, {"bytes", arena.bytes.value}});
  ordered_json& buffers = root["buffers"] = ordered_json::array();
  for (const PlanBuffer& buffer : plan.buffers) {
    ordered_json out{{"name", buffer.name}};
    if (buffer.value.valid()) out["value"] = buffer.value.value;
    out["bytes"] = buffer.bytes.value;
    out["use"] = name(buffer.use);
    out["arena"] = buffer.arena;
    out["offset"] = buffer.offset.value;
    out["first"] = buffer.lifetime.begin.value;
    out["end"] = buffer.lifetime.end.value;
    buffers.push_back(std::move(out));
  }
  ordered_json& steps = root["steps"] = ordered_json::array();
  for (const PlanStep& step : plan.steps) steps.push_back(step_json(step));
  for (const std::vector<BufferId>& group : plan.contiguous) {
    ordered_json members = ordered_json::array();
    for (const BufferId member : group) members.push_back(member.value);
    root["contiguous"].push_back(std::move(members));
  }
  root["sources"] = places_json(plan.sources);
  root["results"] = places_json(plan.results);
  root["graph"] = ir::to_text(plan.graph);
  return json_text(root) + "\n";
}

bool looks_like_plan(std::string_view text) {
  // Keys may stand in any order: other programs sort them.
  return text.find(fmt::format("\"{}\"", kKind)) != std::string_view::npos;
}

Result<Plan> parse_plan(std::string_view text) {
  const auto root = parse_json(text, kPlanLimits);
  if (!root) return forward(root, "plan file");
  return PlanReader().read(*root);
}

Status require_environment(const Plan& plan, const Environment& here) {
  const Environment& made = plan.environment;
  const auto differs = [](std::string_view what, const auto& planned, const auto& found) {
    return bad_input("the plan was made for {} '{}', here it is '{}'; plan again on this machine",
                     what, planned, found);
  };
  if (made.device != here.device) return differs("device", made.device, here.device);
  if (made.threads != here.threads) return differs("threads", made.threads, here.threads);
  if (made.instruction_set != here.instruction_set)
    return differs("instruction set", made.instruction_set, here.instruction_set);
  if (made.kernel_library != here.kernel_library)
    return differs("kernel library", made.kernel_library, here.kernel_library);
  return {};
}

}  // namespace plimsoll::plan
