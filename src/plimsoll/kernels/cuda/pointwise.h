// Kernels whose elements do not depend on each other, generated from an expression.
//
// A Pointwise says what is computed for every element of a space, in CUDA's own words, from inputs
// called a, b, c, ... that lie anywhere by strides (0 where they are broadcast):
//
//   y = a + b         {.space = y, .inputs = {x, bias}, .outputs = {y}, .results = {"a + b"}}
//   a transpose       the same with "a" and other strides: copies are expressions too
//   AdamW             six inputs, three outputs, statements in front of the results
//
// The generator joins axes (strided_loop.h), packs up to 16 bytes per load where every tensor lies
// so, computes reals in float (in double where a tensor is fp64) and integers in 64 bits, and
// narrows on storing. Sizes and strides are arguments of the kernel and not part of its source, so
// one compiled kernel serves every shape of its kind.
//
// Rejected: templates over functors in .cu files (150 operators x 4 dtypes x packings compile for
// minutes and cannot be fused), and shapes as constants (a compile for every signature).
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/kernels/cuda/site.h"
#include "plimsoll/kernels/strided_loop.h"

namespace plimsoll::kernels::cuda {

struct PointwiseTensor {
  ir::DType dtype;
  Strides strides{};        // per axis of the space, in elements
  std::int64_t offset = 0;  // of its first element, in elements
};

struct Pointwise {
  ir::TensorType space;  // the shape that is run over, in this memory order; the dtype is unused
  std::vector<PointwiseTensor> inputs;   // a, b, c, ...; their addresses at_a, at_b, ...
  std::vector<PointwiseTensor> outputs;  // addresses at_y0, ...
  std::vector<std::string> results;      // one expression for each output
  std::string statements{};              // before the results, for every element
  std::string once{};                    // before the loop, in every thread
  std::vector<Strides> positions{};      // p0, p1, ...: sums of index x stride, not memory
};

// The letter of an input.
std::string input_name(int input);

// The CUDA source; its function is called `pointwise`. The space has elements.
std::string pointwise_source(const Pointwise& pointwise);

class PointwiseKernel {
 public:
  static Result<PointwiseKernel> make(const Pointwise& pointwise);
  // Addresses in the order of inputs and outputs.
  void launch(cudaStream_t stream, std::span<const std::byte* const> inputs,
              std::span<std::byte* const> outputs) const;

 private:
  cudaKernel_t kernel_ = nullptr;  // none when the space is empty
  std::vector<char> loop_;         // the kernel's first argument
  std::vector<std::int64_t> input_bytes_;
  std::vector<std::int64_t> output_bytes_;
  unsigned blocks_ = 0;
};

// The inputs of a node broadcast to its first output, and its outputs; absent inputs take no
// letter. Nothing is computed yet.
Pointwise pointwise_of(const Site& site);

// The kernel of a node that is exactly this; null where a tensor has blocks or a dtype that is
// narrower than a byte.
Made make_pointwise(const Site& site, const Pointwise& pointwise);

// Text as a template argument: a row of the table names its expression.
template <std::size_t size>
struct Text {
  // NOLINTNEXTLINE(google-explicit-constructor): a literal becomes a Text by itself
  constexpr Text(const char (&given)[size]) { std::copy_n(given, size, text); }
  char text[size];
};

// A node that is one expression of its inputs, broadcast.
Made make_expression_kernel(const Site& site, const char* expression);
template <Text expression>
Made make_expression(const Site& site) {
  return make_expression_kernel(site, expression.text);
}

}  // namespace plimsoll::kernels::cuda
