#include "plimsoll/schedule/workload/dag_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <queue>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/nearest_name.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/schedule/workload/node_link.h"

namespace plimsoll::schedule {
namespace {

using nlohmann::json;

constexpr std::size_t kMostNodes = 4'000'000;
constexpr double kLargestBytes = 4e15;

// A key that nobody reads is an edge or a cost that would be lost.
template <std::size_t kCount>
Status only_keys(const json& object, const std::string& where,
                 const std::array<std::string_view, kCount>& keys) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const std::string near =
        key.size() > 40 ? ""
                        : nearest_name(key, std::vector<std::string>(keys.begin(), keys.end()));
    return bad_input("{}: unknown key `{}`{}", where, excerpt(key),
                     near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
  }
  return {};
}

constexpr std::array<std::string_view, 3> kFileKeys = {"nodes", "order", "schema"};
constexpr std::array<std::string_view, 13> kNodeKeys = {
    "name", "seconds",  "bytes",     "scratch", "inputs", "recompute", "keep",
    "swap", "in_place", "encodings", "cheap",   "block",  "split"};
constexpr std::array<std::string_view, 3> kSplitKeys = {"parts", "cut", "sum"};
constexpr std::int64_t kMostParts = 1024;
constexpr std::array<std::string_view, 5> kEncodingKeys = {"name", "bytes", "encode_seconds",
                                                           "decode_seconds", "lossless"};

Result<Bytes> bytes_of(const json& node, const char* key, const std::string& name) {
  const auto found = node.find(key);
  if (found == node.end()) return Bytes(0);
  const double number = found->is_number() ? found->get<double>() : -1;
  if (!std::isfinite(number) || number < 0 || number > kLargestBytes) {
    return bad_input("node '{}': `{}` must be a number of bytes from 0 to 4e15", name, key);
  }
  return found->is_number_integer() ? Bytes(found->get<std::int64_t>())
                                    : Bytes(static_cast<std::int64_t>(std::ceil(number)));
}

Result<double> seconds_of(const json& node, const char* key, const std::string& name) {
  const auto found = node.find(key);
  if (found == node.end()) return 0.0;
  const double number = found->is_number() ? found->get<double>() : -1;
  if (!std::isfinite(number) || number < 0) {
    return bad_input("node '{}': `{}` must be a finite cost, 0 or more", name, key);
  }
  return number;
}

Result<bool> flag_of(const json& node, const char* key, bool otherwise, const std::string& name) {
  const auto found = node.find(key);
  if (found == node.end()) return otherwise;
  if (!found->is_boolean()) return bad_input("node '{}': `{}` must be true or false", name, key);
  return found->get<bool>();
}

class Reader {
 public:
  Result<Workload> read(const json& file) {
    const auto nodes = file.is_object() ? file.find("nodes") : file.end();
    if (!file.is_object() || nodes == file.end() || !nodes->is_array()) {
      return bad_input("a DAG file is an object with an array `nodes`");
    }
    PLIMSOLL_RETURN_IF_ERROR(only_keys(file, "the DAG file", kFileKeys));
    if (nodes->size() > kMostNodes) return bad_input("{} nodes are too many", nodes->size());
    PLIMSOLL_RETURN_IF_ERROR(name_nodes(*nodes));
    for (std::size_t i = 0; i < nodes->size(); ++i)
      PLIMSOLL_RETURN_IF_ERROR(read_node((*nodes)[i], i));
    PLIMSOLL_TRY(std::vector<std::size_t> order, choose_order(file));
    Workload out = in_order(order);
    PLIMSOLL_RETURN_IF_ERROR(verify(out));
    return out;
  }

 private:
  Status name_nodes(const json& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].is_object()) return bad_input("node {}: must be an object", i);
      const auto name = nodes[i].find("name");
      if (name != nodes[i].end() && !name->is_string())
        return bad_input("node {}: `name` must be a string", i);
      names_.push_back(name == nodes[i].end() ? std::to_string(i) : name->get<std::string>());
      if (!place_.emplace(names_.back(), i).second)
        return bad_input("node '{}': the name is used twice", names_.back());
    }
    return {};
  }

  Result<std::size_t> find(const json& reference, const std::string& where) const {
    if (reference.is_string()) {
      const auto found = place_.find(reference.get_ref<const std::string&>());
      if (found != place_.end()) return found->second;
      return bad_input("{}: there is no node '{}'", where,
                       excerpt(reference.get_ref<const std::string&>()));
    }
    if (reference.is_number_unsigned() && reference.get<std::uint64_t>() < names_.size()) {
      return static_cast<std::size_t>(reference.get<std::uint64_t>());
    }
    return bad_input("{}: a node is named by its name or its place", where);
  }

  Status read_node(const json& node, std::size_t i) {
    const std::string& name = names_[i];
    PLIMSOLL_RETURN_IF_ERROR(only_keys(node, "node '" + excerpt(name) + "'", kNodeKeys));
    Task task;
    Value value;
    task.name = value.name = name;
    PLIMSOLL_TRY(task.seconds, seconds_of(node, "seconds", name));
    PLIMSOLL_TRY(task.scratch, bytes_of(node, "scratch", name));
    PLIMSOLL_TRY(value.bytes, bytes_of(node, "bytes", name));
    PLIMSOLL_TRY(value.recompute, flag_of(node, "recompute", true, name));
    PLIMSOLL_TRY(value.keep, flag_of(node, "keep", false, name));
    PLIMSOLL_TRY(value.swappable, flag_of(node, "swap", true, name));
    PLIMSOLL_TRY(task.cheap, flag_of(node, "cheap", false, name));
    PLIMSOLL_RETURN_IF_ERROR(read_inputs(node, name, task));
    PLIMSOLL_RETURN_IF_ERROR(read_encodings(node, name, value));
    PLIMSOLL_RETURN_IF_ERROR(read_split(node, name, task));
    if (const auto block = node.find("block"); block != node.end()) {
      if (!block->is_number_integer() || block->get<std::int64_t>() < 0 ||
          block->get<std::int64_t>() > 1 << 30) {
        return bad_input("node '{}': `block` must be a small whole number", name);
      }
      task.block = block->get<std::int32_t>();
    }
    if (const auto in_place = node.find("in_place"); in_place != node.end()) {
      PLIMSOLL_TRY(const std::size_t input, find(*in_place, "node '" + name + "'"));
      value.in_place = InPlace{ValueId(input), false};
    }
    tasks_.push_back(std::move(task));
    values_.push_back(std::move(value));
    return {};
  }

  Status read_inputs(const json& node, const std::string& name, Task& task) const {
    const auto inputs = node.find("inputs");
    if (inputs == node.end()) return {};
    if (!inputs->is_array()) return bad_input("node '{}': `inputs` must be an array", name);
    for (const json& input : *inputs) {
      PLIMSOLL_TRY(const std::size_t from, find(input, "node '" + name + "'"));
      task.inputs.push_back(ValueId(from));
    }
    std::sort(task.inputs.begin(), task.inputs.end());
    task.inputs.erase(std::unique(task.inputs.begin(), task.inputs.end()), task.inputs.end());
    return {};
  }

  Status read_split(const json& node, const std::string& name, Task& task) const {
    const auto split = node.find("split");
    if (split == node.end()) return {};
    if (!split->is_object()) return bad_input("node '{}': `split` must be an object", name);
    PLIMSOLL_RETURN_IF_ERROR(only_keys(*split, "node '" + excerpt(name) + "': split", kSplitKeys));
    TaskSplit& out = task.split.emplace();
    const auto parts = split->find("parts");
    if (parts == split->end() || !parts->is_number_integer() || parts->get<std::int64_t>() < 1 ||
        parts->get<std::int64_t>() > kMostParts)
      return bad_input("node '{}': `parts` of `split` must be a whole number from 1 to {}", name,
                       kMostParts);
    out.parts = parts->get<std::int64_t>();
    PLIMSOLL_TRY(out.sums, flag_of(*split, "sum", false, name));
    const auto cut = split->find("cut");
    if (cut == split->end()) return {};
    if (!cut->is_array()) return bad_input("node '{}': `cut` must be an array of inputs", name);
    for (const json& input : *cut) {
      PLIMSOLL_TRY(const std::size_t from, find(input, "node '" + name + "': `cut`"));
      if (!std::binary_search(task.inputs.begin(), task.inputs.end(), ValueId(from)))
        return bad_input("node '{}': `cut` names '{}', which is no input of it", name,
                         excerpt(names_[from]));
      out.cut.emplace_back(from);
    }
    return {};
  }

  Status read_encodings(const json& node, const std::string& name, Value& value) const {
    const auto encodings = node.find("encodings");
    if (encodings == node.end()) return {};
    if (!encodings->is_array() || encodings->size() > 64) {
      return bad_input("node '{}': `encodings` must be an array of at most 64", name);
    }
    for (const json& offer : *encodings) {
      if (!offer.is_object()) return bad_input("node '{}': an encoding must be an object", name);
      PLIMSOLL_RETURN_IF_ERROR(
          only_keys(offer, "node '" + excerpt(name) + "': encoding", kEncodingKeys));
      Encoding encoding;
      if (const auto label = offer.find("name"); label != offer.end() && label->is_string()) {
        encoding.name = label->get<std::string>();
      }
      PLIMSOLL_TRY(encoding.bytes, bytes_of(offer, "bytes", name));
      PLIMSOLL_TRY(encoding.encode_seconds, seconds_of(offer, "encode_seconds", name));
      PLIMSOLL_TRY(encoding.decode_seconds, seconds_of(offer, "decode_seconds", name));
      PLIMSOLL_TRY(encoding.lossless, flag_of(offer, "lossless", true, name));
      value.encodings.push_back(std::move(encoding));
    }
    return {};
  }

  Result<std::vector<std::size_t>> choose_order(const json& file) const {
    const auto given = file.find("order");
    if (given == file.end()) return topological();
    if (!given->is_array() || given->size() != names_.size()) {
      return bad_input("`order` must name each of the {} nodes once", names_.size());
    }
    std::vector<std::size_t> order;
    std::vector<char> seen(names_.size(), 0);
    for (const json& reference : *given) {
      PLIMSOLL_TRY(const std::size_t node, find(reference, "`order`"));
      if (seen[node]++) return bad_input("`order` names '{}' twice", names_[node]);
      order.push_back(node);
    }
    return order;
  }

  // Of the nodes that can run, always the first in the file: the file's own order where possible.
  Result<std::vector<std::size_t>> topological() const {
    std::vector<std::size_t> missing(names_.size());
    std::vector<std::vector<std::size_t>> readers(names_.size());
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      missing[i] = tasks_[i].inputs.size();
      for (ValueId input : tasks_[i].inputs) readers[input.index()].push_back(i);
      if (missing[i] == 0) ready.push(i);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t node = ready.top();
      ready.pop();
      order.push_back(node);
      for (std::size_t reader : readers[node]) {
        if (--missing[reader] == 0) ready.push(reader);
      }
    }
    if (order.size() == names_.size()) return order;
    const auto stuck = static_cast<std::size_t>(
        std::find_if(missing.begin(), missing.end(), [](std::size_t m) { return m > 0; }) -
        missing.begin());
    return bad_input("node '{}': is part of a cycle, or reads from one", names_[stuck]);
  }

  Workload in_order(const std::vector<std::size_t>& order) {
    std::vector<std::size_t> position(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    Workload out;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Task task = std::move(tasks_[order[i]]);
      Value value = std::move(values_[order[i]]);
      for (ValueId& input : task.inputs) input = ValueId(position[input.index()]);
      std::sort(task.inputs.begin(), task.inputs.end());
      if (task.split) {
        for (ValueId& input : task.split->cut) input = ValueId(position[input.index()]);
      }
      if (value.in_place) value.in_place->input = ValueId(position[value.in_place->input.index()]);
      task.outputs.push_back(ValueId(i));
      value.producer = TaskId(i);
      out.tasks.push_back(std::move(task));
      out.values.push_back(std::move(value));
    }
    return out;
  }

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> place_;
  std::vector<Task> tasks_;
  std::vector<Value> values_;
};

}  // namespace

Result<Workload> read_dag(std::string_view text) {
  PLIMSOLL_TRY(json file, parse_json(text, kDagLimits));
  if (is_node_link(file)) {
    PLIMSOLL_TRY(file, dag_of_node_link(std::move(file)));
  }
  return read_dag_tree(file);
}

Result<Workload> read_dag_tree(const json& file) {
  return Reader().read(file);
}

json dag_nodes(const Workload& workload, double cost_unit) {
  json nodes = json::array();
  const auto name_of_value = [&](ValueId id) { return workload.value(id).name; };
  for (const Value& value : workload.values) {
    const Task& task = workload.task(value.producer);
    json node{
        {"name", value.name}, {"seconds", task.seconds * cost_unit}, {"bytes", value.bytes.value}};
    for (const ValueId input : task.inputs) node["inputs"].push_back(name_of_value(input));
    if (task.scratch.value > 0) node["scratch"] = task.scratch.value;
    if (!value.recompute) node["recompute"] = false;
    if (value.keep) node["keep"] = true;
    if (!value.swappable) node["swap"] = false;
    if (value.in_place) node["in_place"] = name_of_value(value.in_place->input);
    if (task.cheap) node["cheap"] = true;
    if (task.block >= 0) node["block"] = task.block;
    if (task.split) {
      node["split"]["parts"] = task.split->parts;
      if (task.split->sums) node["split"]["sum"] = true;
      for (const ValueId input : task.split->cut)
        node["split"]["cut"].push_back(name_of_value(input));
    }
    for (const Encoding& form : value.encodings) {
      node["encodings"].push_back({{"name", form.name},
                                   {"bytes", form.bytes.value},
                                   {"encode_seconds", form.encode_seconds * cost_unit},
                                   {"decode_seconds", form.decode_seconds * cost_unit},
                                   {"lossless", form.lossless}});
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace plimsoll::schedule
