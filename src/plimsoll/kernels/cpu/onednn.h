// The seam to oneDNN: its descriptors from our types, and a kernel that runs one of its primitives.
//
// oneDNN likes to decide layouts and to allocate. Both are the plan's business here, so:
// descriptors are always made from a type *with its layout* (a primitive that would want another
// one simply is not found, and the layout pass inserts a visible reorder instead); the scratchpad
// is always the user's; and gemm:jit, which allocates up to 74 KB a call behind everybody's back,
// is taken only where nothing but the naive reference is left. A primitive is made once, when the
// kernel is made; a run sets addresses and executes (oneDNN still makes a few small allocations of
// its own then, all far below 4 KiB).
//
// Threads: oneDNN plans for the number of OpenMP threads at creation; use_threads() is called
// before creation and before every run with the same number.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dnnl.hpp>

#include "plimsoll/kernels/cpu/site.h"

namespace plimsoll::kernels {

const dnnl::engine& onednn_engine();

// The dtype in oneDNN's words; nothing where it has none.
std::optional<dnnl::memory::data_type> onednn_dtype(ir::DType dtype);

// The type with its layout, blocks included. A scalar becomes one dimension of 1.
dnnl::memory::desc describe(const ir::TensorType& type);
// Plain strides of our choice: transposed operands, windows into larger tensors.
dnnl::memory::desc describe(ir::DType dtype, const dnnl::memory::dims& dims,
                            const dnnl::memory::dims& strides);
// The way back, for a descriptor oneDNN chose itself; nothing where our Layout has no words for it.
std::optional<ir::Layout> layout_of(const dnnl::memory::desc& desc);

inline dnnl::memory::dims dims_of(const ir::Shape& shape) {
  return {shape.begin(), shape.end()};
}

// Attributes every primitive has: the scratchpad is ours.
dnnl::primitive_attr user_scratchpad();

// A product of matrices, which oneDNN calls "gemm:jit" or, for convolutions, "x64:gemm:jit".
inline bool is_gemm(std::string_view implementation) {
  return implementation.starts_with("gemm") || implementation.starts_with("x64:gemm");
}

// Moves a primitive descriptor on to the first implementation that is neither gemm-based nor the
// naive reference; failing that to a gemm-based one; failing that it stays where it was.
template <typename Descriptor>
Descriptor preferred(Descriptor first) {
  std::optional<Descriptor> gemm;
  Descriptor at = first;
  while (true) {
    const std::string_view name = at.impl_info_str();
    if (is_gemm(name)) {
      if (!gemm) gemm = at;
    } else if (!name.starts_with("ref") && !name.starts_with("simple")) {
      return at;
    }
    if (!at.next_impl()) break;
  }
  return gemm ? *gemm : first;
}

// One oneDNN primitive with its arguments: which input or output of the node each one is.
class Primitive {
 public:
  struct Binding {
    enum class From : std::uint8_t { kInput, kOutput } from;
    int index;
    int argument;  // DNNL_ARG_...
    dnnl::memory::desc desc;
  };

  Primitive(const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
            const std::vector<Binding>& bindings);
  Bytes scratch() const { return scratch_; }
  void run(const Arguments& arguments);

 private:
  struct Bound {
    Binding::From from;
    int index;
    dnnl::memory memory;
  };
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<Bound> bound_;
  dnnl::memory scratchpad_;
  std::unordered_map<int, dnnl::memory> arguments_;
  Bytes scratch_;
};

inline Primitive::Binding reads(int input, int argument, const dnnl::memory::desc& desc) {
  return {Primitive::Binding::From::kInput, input, argument, desc};
}
inline Primitive::Binding writes(int output, int argument, const dnnl::memory::desc& desc) {
  return {Primitive::Binding::From::kOutput, output, argument, desc};
}

// A kernel that is exactly one primitive. Its outputs must not lie over its inputs.
class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(const Site& site, Primitive primitive)
      : threads_(site.threads), primitive_(std::move(primitive)) {}
  Bytes scratch() const override { return primitive_.scratch(); }
  bool in_place() const override { return false; }
  void run(const Arguments& arguments) override {
    use_threads(threads_);
    primitive_.run(arguments);
  }

 private:
  int threads_;
  Primitive primitive_;
};

}  // namespace plimsoll::kernels
