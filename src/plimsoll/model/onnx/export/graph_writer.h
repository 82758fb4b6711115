// Collects the nodes and initialisers of an ONNX graph; what the rows of the writer's table call.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/model/onnx/format/wire_writer.h"

namespace plimsoll::model::onnx {

using OnnxAttribute = std::pair<std::string_view, ir::Attribute>;

class GraphWriter {
 public:
  explicit GraphWriter(const ir::Graph& graph);

  const ir::Graph& graph() const { return graph_; }
  const ir::Shape& shape(ValueId value) const { return graph_.value(value).type.shape; }
  // The name of a value in the file; "" for an absent one.
  std::string name(ValueId value) const { return value.valid() ? names_[value.index()] : ""; }
  // Whether a value depends on a running count.
  bool is_counted(ValueId value) const { return value.valid() && counted_[value.index()]; }

  // One node; the name of its first output, made up when none is given.
  std::string node(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxAttribute>& attributes = {},
                   const std::vector<std::string>& outputs = {});
  std::string integers(const ir::Ints& list);
  std::string scalar(ir::DType dtype, double value);
  void tensor(const std::string& name, const ir::TensorType& type,
              std::span<const std::byte> bytes);

  // Weights of some size go here instead of into the file.
  void set_external(std::string* data, std::string data_name) {
    data_ = data;
    data_name_ = std::move(data_name);
  }
  std::string take_model();

 private:
  std::string fresh();

  const ir::Graph& graph_;
  std::vector<std::string> names_;
  std::vector<bool> counted_;  // by value
  WireWriter nodes_;
  WireWriter tensors_;
  std::string* data_ = nullptr;
  std::string data_name_;
  int made_ = 0;
};

// One node of ours as nodes of ONNX; an error when it has no such form.
Status write_node(GraphWriter& out, const ir::Node& node);

}  // namespace plimsoll::model::onnx
