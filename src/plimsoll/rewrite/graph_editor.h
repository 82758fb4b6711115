// Changes a graph in place of its nodes and puts it in order again at the end.
//
//   GraphEditor edit(graph);
//   for (NodeId n : ...) if (pattern) {
//     PLIMSOLL_TRY(auto made, edit.insert(n, "gelu", {x}, {}));   // stands where n stands
//     edit.replace(edit.graph().node(n).outputs[0], made[0]);  // for every reader
//   }
//   graph = edit.finish();                                  // nodes that lost all readers are gone
//
// A node is inserted *at* another one: it runs just before it, so its inputs have to be ready
// there. Ids of values and nodes stay valid until finish(), which renumbers. Removed are nodes and
// sources that no output and no update needs; inputs of the model always stay.
//
// Cost: an edit is linear in the readers it moves; finish() is linear in the graph.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

class GraphEditor {
 public:
  explicit GraphEditor(ir::Graph graph);

  const ir::Graph& graph() const { return graph_; }
  // Nodes the graph had at the start; inserted ones come after these.
  std::size_t original_nodes() const { return original_; }
  // Null for a source.
  const ir::Node* producer(ValueId value) const;
  const std::vector<NodeId>& readers(ValueId value) const { return readers_[value.index()]; }
  bool is_output(ValueId value) const { return output_[value.index()]; }
  // Exactly one node reads it, once or more, and it is no output.
  bool has_one_reader(ValueId value) const;

  // Result types come from the operator's definition; an error when it refuses. Layer and phase are
  // those of `like`, or else of `at`.
  Result<std::vector<ValueId>> insert(NodeId at, std::string_view op, std::vector<ValueId> inputs,
                                      ir::Attributes attributes = {}, NodeId like = {});
  ValueId insert_constant(std::string_view name, const ir::TensorType& type,
                          std::vector<std::byte> data);
  // A weight whose content comes from a file; the name must be new.
  ValueId insert_weight(std::string name, const ir::TensorType& type);
  // Outputs keep their name.
  void replace(ValueId old, ValueId by);

  ir::Graph finish();

 private:
  void read(NodeId node, ValueId value);

  ir::Graph graph_;
  std::size_t original_;
  std::vector<std::size_t> place_;  // per node: the original node it stands before
  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> output_;
};

// Only what outputs and updates need; inputs stay.
ir::Graph without_dead_nodes(ir::Graph graph);

}  // namespace plimsoll::rewrite
