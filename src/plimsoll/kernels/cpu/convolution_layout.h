// The layout a convolution's kernel wants for its weights: what the layout pass asks.
#pragma once

#include "plimsoll/kernels/cpu/cpu_kernels.h"

namespace plimsoll::kernels {

// Of the weights (conv, conv_grad_input) or of their gradient (conv_grad_weight), the other tensors
// lying as the node says. Row-major for any other operator, and where there is nothing to gain.
ir::Layout convolution_weights_layout(const ir::Graph& graph, const ir::Node& node,
                                      const CpuKernelOptions& options);

}  // namespace plimsoll::kernels
