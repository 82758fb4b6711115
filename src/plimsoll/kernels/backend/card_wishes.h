// What the kernels of a CUDA card want of a graph: the same for a card that is here
// (cuda_entry.cpp) and for one that is planned for elsewhere (paper_card.h), so that both get the
// same graph.
#pragma once

#include "plimsoll/kernels/backend/backend.h"

namespace plimsoll::kernels {

// cuDNN is fastest where weights lie like the data, and all data channels last.
inline ir::Layout card_weights_layout(const ir::Graph& graph, const ir::Node& node) {
  const ir::TensorType& data = graph.value(node.inputs.front()).type;
  const ir::Layout last = ir::Layout::channels_last(data.shape.rank());
  const bool convolution =
      node.op == "conv" || node.op == "conv_grad_input" || node.op == "conv_grad_weight";
  return convolution && data.layout == last ? last : ir::Layout();
}
inline constexpr std::int64_t kLeastChannelsOfCard = 1;

inline BackendRewrites card_rewrites() {
  return {.drops_casts = true,
          .fuses_residuals = true,
          .lays_out_weights = true,
          .pads_rows = true,
          .groups_weights = true};
}

}  // namespace plimsoll::kernels
