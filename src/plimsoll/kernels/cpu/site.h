// What a kernel factory sees: one node with its types, and how many threads will run it.
//
// A factory answers with a kernel, or with null when it does not take these types or layouts; the
// table (table.h) then falls back on the reference evaluation. So a factory is a list of what it
// can do, and nothing else has to know.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "plimsoll/kernels/kernel.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels {

struct Site {
  const ir::Graph& graph;
  const ir::Node& node;
  int threads = 1;

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
};

using Factory = std::unique_ptr<Kernel> (*)(const Site&);

// Sets how many threads OpenMP gives to parallel loops and to oneDNN, for the calling thread.
void use_threads(int threads);

// A kernel that is one function of its arguments. Most are: what they know of the node is captured.
template <typename Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(int threads, Bytes scratch, Body body)
      : threads_(threads), scratch_(scratch), body_(std::move(body)) {}
  Bytes scratch() const override { return scratch_; }
  void run(const Arguments& arguments) override {
    use_threads(threads_);
    body_(arguments);
  }

 private:
  int threads_;
  Bytes scratch_;
  Body body_;
};

template <typename Body>
std::unique_ptr<Kernel> make_kernel(const Site& site, Body body, Bytes scratch = Bytes(0)) {
  return std::make_unique<FunctionKernel<Body>>(site.threads, scratch, std::move(body));
}

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
bool all_f32(const Site& site);
// Every input and output of a rank above one lies row-major (for ranks 0 and 1 there is no other
// way).
bool all_row_major(const Site& site);
// No input or output has blocks: strides say where every element lies.
bool all_unblocked(const Site& site);

}  // namespace plimsoll::kernels
