// Channels in groups, without moving a byte.
//
// [N, C, ...] lying channels last and [N, groups, C / groups, ...] lying with its places before
// both, are the same bytes: a reshape between the two is a view, as it is between row-major
// tensors. Exporters write a shuffle of channels as such a cut, a transpose and the joint; all
// three run where the tensor lies.
//
//   [1,6,5,5]@0231   <- reshape ->   [1,2,3,5,5]@03412
#pragma once

#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::ops {

// N, places, groups, channels of a group.
ir::Layout groups_last(int rank);
// Is `apart` the shape `whole` with its channels cut into groups?
bool cuts_channels(const ir::Shape& whole, const ir::Shape& apart);
// A reshape between these types, one way or the other, that moves nothing: the channels-last tensor
// is `whole`.
bool is_channel_cut(const ir::TensorType& whole, const ir::TensorType& apart);

}  // namespace plimsoll::ops
