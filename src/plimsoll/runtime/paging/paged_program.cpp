#include "plimsoll/runtime/paging/paged_program.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/runtime/update_owners.h"

namespace plimsoll::runtime {
namespace {

// What a node does with the values it touches, each once.
std::vector<PagedProgram::Use> uses_of(const ir::Node& node, const std::vector<ValueId>& owners) {
  std::vector<PagedProgram::Use> out;
  const auto add = [&](ValueId value, BlockAccess access) {
    const std::size_t owner = owners[value.index()].index();
    const auto same = std::find_if(
        out.begin(), out.end(), [&](const PagedProgram::Use& use) { return use.tensor == owner; });
    if (same == out.end()) {
      out.push_back({owner, access});
    } else if (same->access != access) {
      same->access = BlockAccess::kUpdate;
    }
  };
  for (const ValueId input : node.inputs) {
    if (input.valid()) add(input, BlockAccess::kRead);
  }
  for (const ValueId output : node.outputs) add(output, BlockAccess::kWrite);
  return out;
}

}  // namespace

double PagedProgram::seconds() const {
  return std::accumulate(launches.begin(), launches.end(), 0.0,
                         [](double sum, const Launch& launch) { return sum + launch.seconds; });
}

PagedProgram paged_program(const ir::Graph& graph, const std::function<Bytes(NodeId)>& scratch) {
  const std::vector<ValueId> owners = update_owners(graph);
  PagedProgram out;
  for (const ir::Value& value : graph.values) {
    out.tensors.push_back({ir::bytes_of(value.type), ir::is_source(value.kind)
                                                         ? Lifetime::kPersistent
                                                         : Lifetime::kTransient});
  }
  for (const ValueId output : graph.outputs)
    out.tensors[owners[output.index()].index()].lifetime = Lifetime::kPersistent;
  std::vector<int> readers(graph.values.size(), 0);
  for (const ir::Node& node : graph.nodes) {
    for (const ValueId input : node.inputs) {
      if (input.valid()) ++readers[owners[input.index()].index()];
    }
  }
  std::vector<int> left = readers;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    PagedProgram::Launch& launch = out.launches.emplace_back();
    launch.uses = uses_of(node, owners);
    if (const Bytes bytes = scratch(NodeId(n)); bytes.value > 0) {
      launch.uses.push_back({out.tensors.size(), BlockAccess::kWrite});
      launch.dies.push_back(out.tensors.size());
      out.tensors.push_back({bytes, Lifetime::kTransient});
    }
    const auto dies = [&](std::size_t tensor) {
      if (out.tensors[tensor].lifetime == Lifetime::kTransient) launch.dies.push_back(tensor);
    };
    for (const ValueId input : node.inputs) {
      if (!input.valid()) continue;
      const std::size_t owner = owners[input.index()].index();
      if (--left[owner] == 0) dies(owner);
    }
    for (const ValueId output : node.outputs) {
      const std::size_t owner = owners[output.index()].index();
      if (readers[owner] == 0) dies(owner);
    }
  }
  return out;
}

}  // namespace plimsoll::runtime
