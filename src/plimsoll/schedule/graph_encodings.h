// Which smaller forms the values of a graph may wait in.
//
//   sparse           lossless; for fp32 results of ReLU, where about half is zero, and of dropout
//   crumbs, nibbles  lossless; for the indices of a max pool, which are bytes in the graph: 2 bits for
//                    windows of up to 4 places, 4 bits up to 16
//   fp16             lossy, two bytes a value; for any other fp32 result of the forward pass
//
// Dropout needs no form of its own: its mask is made again from the seed. Nor does what ReLU's gradient
// needs where that is all that is needed: rewrite/keep_masks.h makes it a value of one bit. Bytes are those
// of the box (codec/box.h), padded like tensors; the room for a sparse map counts on a little less than the
// expected share of zeros.
#pragma once

#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/schedule/workload.h"

namespace plimsoll::schedule {

std::vector<Encoding> offer_encodings(const ir::Graph& graph, const ir::Node& maker, ValueId value,
                                      const CodecRates& rates);

}  // namespace plimsoll::schedule
