// One node with its types, as the factories of kernels see it on every device.
#pragma once

#include "plimsoll/kernels/kernel.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels {

struct NodeSite {
  const ir::Graph& graph;
  const ir::Node& node;

  int inputs() const { return static_cast<int>(node.inputs.size()); }
  int outputs() const { return static_cast<int>(node.outputs.size()); }
  bool has(int input) const {
    return input < inputs() && node.inputs[static_cast<std::size_t>(input)].valid();
  }
  const ir::TensorType& in(int i) const {
    return graph.value(node.inputs[static_cast<std::size_t>(i)]).type;
  }
  const ir::TensorType& out(int i = 0) const {
    return graph.value(node.outputs[static_cast<std::size_t>(i)]).type;
  }
  ops::AttributeReader attributes() const { return ops::attributes_of(node); }

  // Every input and output passes the test.
  template <typename Test>
  bool every_type(const Test& test) const {
    for (int i = 0; i < inputs(); ++i) {
      if (has(i) && !test(in(i))) return false;
    }
    for (int i = 0; i < outputs(); ++i) {
      if (!test(out(i))) return false;
    }
    return true;
  }
};

// The tensors of a run with their element type.
template <typename T>
const T* input(const Arguments& arguments, int i) {
  return reinterpret_cast<const T*>(arguments.inputs[static_cast<std::size_t>(i)]);
}
template <typename T>
T* output(const Arguments& arguments, int i = 0) {
  return reinterpret_cast<T*>(arguments.outputs[static_cast<std::size_t>(i)]);
}
template <typename T>
T* scratch(const Arguments& arguments) {
  return reinterpret_cast<T*>(arguments.scratch);
}

inline bool is_f32(const ir::TensorType& type) {
  return type.dtype == ir::DType::kF32;
}

// Every input and output is fp32.
inline bool all_f32(const NodeSite& site) {
  return site.every_type(is_f32);
}
// Every input and output of a rank above one lies row-major (for ranks 0 and 1 there is no other
// way).
inline bool all_row_major(const NodeSite& site) {
  return site.every_type([](const ir::TensorType& type) {
    return type.layout.is_row_major() || type.shape.rank() < 2;
  });
}
// No input or output has blocks: strides say where every element lies.
inline bool all_unblocked(const NodeSite& site) {
  return site.every_type([](const ir::TensorType& type) { return type.layout.block_count == 0; });
}

}  // namespace plimsoll::kernels
