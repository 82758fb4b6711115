#include "plimsoll/schedule/workload/node_link.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/utf8.h"

namespace plimsoll::schedule {
namespace {

using nlohmann::json;

struct Spelling {
  const char* key;
  double unit = 1;
};
// What the form itself calls them stands first; Checkmate's graphs have cost_cpu and cost_ram,
// Moccasin's duration and out_cost, both times in microseconds.
constexpr std::array<Spelling, 5> kCostSpellings = {
    {{"seconds"}, {"cost"}, {"time"}, {"cost_cpu", 1e-6}, {"duration", 1e-6}}};
constexpr std::array<Spelling, 5> kSizeSpellings = {
    {{"bytes"}, {"size"}, {"memory"}, {"cost_ram"}, {"out_cost"}}};
// Of a node of our own form; `inputs` stand in the edges.
constexpr std::array<const char*, 7> kOwnKeys = {"scratch",   "recompute", "keep", "swap",
                                                 "encodings", "cheap",     "block"};

std::string shown(const json& value) {
  return excerpt(json_text(value));
}

template <typename Keys>
bool is_one_of(const Keys& keys, const std::string& key) {
  return std::any_of(keys.begin(), keys.end(), [&](const auto& known) { return key == known; });
}

bool is_spelling(std::span<const Spelling> spellings, const std::string& key) {
  return std::any_of(spellings.begin(), spellings.end(),
                     [&](const Spelling& known) { return key == known.key; });
}

std::string names_of(std::span<const Spelling> spellings) {
  std::string out;
  for (const Spelling& spelling : spellings)
    out += fmt::format("{}`{}`", out.empty() ? "" : ", ", spelling.key);
  return out;
}

// A number that nobody reads could be the one that matters.
Status refuse_unread(const std::string& where, const std::string& key, const json& value,
                     std::string_view advice) {
  if (value.is_string() || value.is_null()) return {};
  return bad_input("{}: unknown key `{}` ({}); {}", where, excerpt(key), shown(value), advice);
}

class NodeLink {
 public:
  explicit NodeLink(json file) : file_(std::move(file)) {}

  Result<json> convert() {
    PLIMSOLL_RETURN_IF_ERROR(check_head());
    json& nodes = file_["nodes"];
    PLIMSOLL_RETURN_IF_ERROR(take_ids(nodes));
    const bool own_names = names_differ(nodes);
    json out{{"nodes", json::array()}};
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      PLIMSOLL_TRY(json node, node_of(nodes[i], i, own_names));
      out["nodes"].push_back(std::move(node));
    }
    PLIMSOLL_RETURN_IF_ERROR(take_edges(out["nodes"]));
    PLIMSOLL_RETURN_IF_ERROR(take_order(out));
    return out;
  }

 private:
  Status check_head() {
    edges_key_ = file_.contains("links") ? "links" : "edges";
    if (file_.contains("links") && file_.contains("edges"))
      return bad_input("the graph has `links` and `edges`; a node-link file has one of them");
    for (const auto& [key, value] : file_.items()) {
      if (key == "nodes" || key == edges_key_ || key == "graph") continue;
      if (key != "directed" && key != "multigraph")
        return bad_input(
            "unknown key `{}`; a node-link graph has directed, multigraph, graph, nodes, and links "
            "or edges",
            excerpt(key));
      if (!value.is_boolean()) return bad_input("`{}` must be true or false", key);
      if (key == "directed" && !value.get<bool>())
        return bad_input(
            "`directed` is false: an edge must say which node reads and which is read; make the "
            "graph with networkx.DiGraph");
    }
    if (!file_[edges_key_].is_array()) return bad_input("`{}` must be an array", edges_key_);
    return {};
  }

  Status take_ids(const json& nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].is_object())
        return bad_input("node {}: is {}, expected an object", i, shown(nodes[i]));
      const auto id = nodes[i].contains("id") ? nodes[i].find("id") : nodes[i].find("name");
      if (id == nodes[i].end()) return bad_input("node {}: has no `id`", i);
      if (!place_.emplace(json_text(*id), i).second)
        return bad_input("node {}: the id {} is used twice", i, shown(*id));
      ids_.push_back(id->is_string() ? id->get<std::string>() : json_text(*id));
    }
    return {};
  }

  static bool names_differ(const json& nodes) {
    std::unordered_map<std::string, int> seen;
    return std::all_of(nodes.begin(), nodes.end(), [&](const json& node) {
      const auto name = node.find("name");
      return name != node.end() && name->is_string() &&
             seen[name->get_ref<const std::string&>()]++ == 0;
    });
  }

  Result<json> node_of(json& node, std::size_t i, bool own_names) const {
    const std::string where = "node '" + excerpt(ids_[i]) + "'";
    json out{{"name", own_names ? node["name"] : json(ids_[i])}, {"inputs", json::array()}};
    PLIMSOLL_TRY(out["seconds"], number(node, where, "cost", kCostSpellings));
    PLIMSOLL_TRY(out["bytes"], number(node, where, "size", kSizeSpellings));
    for (auto& [key, value] : node.items()) {
      if (key == "id" || key == "name" || key == "backward" || is_spelling(kCostSpellings, key) ||
          is_spelling(kSizeSpellings, key))
        continue;
      if (key == "param_cost" && value == 0) continue;
      if (is_one_of(kOwnKeys, key)) {
        out[key] = std::move(value);
      } else if (key == "in_place") {
        PLIMSOLL_TRY(out[key], place_of(value, where));
      } else {
        PLIMSOLL_RETURN_IF_ERROR(refuse_unread(
            where, key, value,
            fmt::format("the cost is read from {}, the size from {}; leave out what is neither",
                        names_of(kCostSpellings), names_of(kSizeSpellings))));
      }
    }
    return out;
  }

  static Result<json> number(const json& node, const std::string& where, const char* what,
                             std::span<const Spelling> spellings) {
    const Spelling* found = nullptr;
    for (const Spelling& spelling : spellings) {
      if (!node.contains(spelling.key)) continue;
      if (found != nullptr)
        return bad_input("{}: has `{}` and `{}`, and one {} is expected", where, found->key,
                         spelling.key, what);
      found = &spelling;
    }
    if (found == nullptr)
      return bad_input("{}: has no {}, which is one of {}", where, what, names_of(spellings));
    const json& value = node[found->key];
    const double amount = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(amount) || amount < 0)
      return bad_input("{}: `{}` is {}, expected a number of 0 or more", where, found->key,
                       shown(value));
    return found->unit == 1 ? value : json(amount * found->unit);
  }

  Result<std::size_t> place_of(const json& id, const std::string& where) const {
    const auto found = place_.find(json_text(id));
    if (found == place_.end()) return bad_input("{}: there is no node {}", where, shown(id));
    return found->second;
  }

  Status take_edges(json& nodes) const {
    const json& edges = file_[edges_key_];
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const std::string where = fmt::format("`{}` {}", edges_key_, e);
      if (!edges[e].is_object())
        return bad_input("{}: is {}, expected an object with `source` and `target`", where,
                         shown(edges[e]));
      PLIMSOLL_TRY(const std::size_t source, end_of(edges[e], where, "source", "0"));
      PLIMSOLL_TRY(const std::size_t target, end_of(edges[e], where, "target", "1"));
      for (const auto& [key, value] : edges[e].items()) {
        if (key == "source" || key == "target" || key == "key" || key == "0" || key == "1")
          continue;
        PLIMSOLL_RETURN_IF_ERROR(refuse_unread(
            where, key, value, "sizes and costs belong to nodes, and an edge has neither"));
      }
      nodes[target]["inputs"].push_back(source);
    }
    return {};
  }

  Result<std::size_t> end_of(const json& edge, const std::string& where, const char* key,
                             const char* other) const {
    const auto id = edge.contains(key) ? edge.find(key) : edge.find(other);
    if (id == edge.end()) return bad_input("{}: has no `{}`", where, key);
    return place_of(*id, where);
  }

  // What the graph as a whole is called and drawn with is no part of the problem.
  Status take_order(json& out) const {
    const auto graph = file_.find("graph");
    if (graph == file_.end()) return {};
    if (!graph->is_object())
      return bad_input("`graph` is {}, expected an object of attributes", shown(*graph));
    for (const char* key : {"node_default", "edge_default"}) {
      if (graph->contains(key) && !(*graph)[key].empty())
        return bad_input("`graph`: `{}` is not read; write its attributes at every node", key);
    }
    const auto order = graph->find("order");
    if (order == graph->end()) return {};
    if (!order->is_array()) return bad_input("`graph`: `order` must be an array of ids");
    out["order"] = json::array();
    for (const json& id : *order) {
      PLIMSOLL_TRY(const std::size_t place, place_of(id, "`order`"));
      out["order"].push_back(place);
    }
    return {};
  }

  json file_;
  std::string edges_key_;
  std::vector<std::string> ids_;
  std::unordered_map<std::string, std::size_t> place_;  // by the id as JSON: "3" and 3 differ
};

}  // namespace

bool is_node_link(const json& file) {
  return file.is_object() && (file.contains("links") || file.contains("edges"));
}

Result<json> dag_of_node_link(json file) {
  if (!file.contains("nodes") || !file["nodes"].is_array())
    return bad_input("a node-link graph is an object with an array `nodes`");
  return NodeLink(std::move(file)).convert();
}

}  // namespace plimsoll::schedule
