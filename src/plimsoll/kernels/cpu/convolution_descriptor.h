// Convolution in oneDNN's words: what the kernels of its directions and the layout pass share.
//
// The layouts are those of the node's types: NCHW or channels-last tensors, weights plain or in the
// blocks oneDNN asks for. convolution_layout.h says which blocks those are, so that the layout pass
// can put a reorder in front: forward, data gradient and weight gradient want different ones.
//
// Weights [M, C/g, ...] are [g, M/g, C/g, ...] to oneDNN where there are groups.
#pragma once

#include <optional>

#include "plimsoll/kernels/cpu/onednn.h"

namespace plimsoll::kernels {

struct ConvolutionGeometry {
  dnnl::memory::dims strides;
  dnnl::memory::dims dilations;  // oneDNN's: 0 is none
  dnnl::memory::dims begins;
  dnnl::memory::dims ends;
  std::int64_t group = 1;
};

enum class ConvolutionDirection : std::uint8_t { kForward, kInputGradient, kWeightGradient };

// The three tensors of a convolution whatever its direction: x, w and y (or their gradients).
struct ConvolutionTensors {
  ir::TensorType x;
  ir::TensorType w;
  ir::TensorType y;
  bool bias = false;
};

// What plays x, w and y in a node of this direction.
ConvolutionTensors convolution_tensors(const Site& site, ConvolutionDirection direction);

// Types and blocks that a descriptor can be made of.
bool can_describe(const ConvolutionTensors& tensors, const ops::AttributeReader& attributes);

// The primitive descriptors of the three directions. `weights` may be of format `any`.
struct ConvolutionDescriptor {
  ConvolutionGeometry geometry;
  dnnl::memory::desc x;
  dnnl::memory::desc weights;
  dnnl::memory::desc y;
  dnnl::memory::desc bias;
  bool relu = false;

  dnnl::convolution_forward::primitive_desc forward() const;
  dnnl::convolution_backward_data::primitive_desc backward_data() const;
  dnnl::convolution_backward_weights::primitive_desc backward_weights() const;
};

ConvolutionDescriptor describe_convolution(const ops::AttributeReader& attributes,
                                           const ConvolutionTensors& tensors);

// The weights of a descriptor with groups, as oneDNN chose them, without; nothing where groups and
// their channels do not make one axis.
std::optional<dnnl::memory::desc> without_groups(const dnnl::memory::desc& chosen);

}  // namespace plimsoll::kernels
