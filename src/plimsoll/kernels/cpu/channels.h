// A tensor [N, C, ...] as the channel-wise kernels see it: which of the two layouts, and its
// extents.
//
//   NCHW            N x C planes of `plane` elements each
//   channels last   N x plane rows of C elements each
#pragma once

#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::kernels {

struct Channels {
  bool valid = false;  // false: neither layout
  bool last = false;
  std::int64_t batch = 0;
  std::int64_t channels = 0;
  std::int64_t plane = 0;

  std::int64_t rows() const { return batch * plane; }
  std::int64_t planes() const { return batch * channels; }
};

inline Channels channels_of(const ir::TensorType& type) {
  const int rank = type.shape.rank();
  if (rank < 2) return {};
  Channels out{false, false, type.shape[0], type.shape[1], type.shape.elements(2, rank)};
  if (type.layout.is_row_major()) {
    // [N, C] has its channels last already.
    out.valid = true;
    out.last = rank == 2;
  } else if (rank > 2 && type.layout == ir::Layout::channels_last(rank)) {
    out.valid = out.last = true;
  }
  return out;
}

}  // namespace plimsoll::kernels
