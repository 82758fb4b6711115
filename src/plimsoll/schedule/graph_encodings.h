// Which smaller forms the values of a graph may wait in.
//
//   sparse  lossless; for fp32 results of ReLU and of dropout, where about half is zero
//   fp16    lossy, two bytes a value; for any other fp32 result of the forward pass
//
// Max-pool indices are bytes in the graph already and dropout keeps its seed, so neither needs a form of its
// own. Bytes are those of the box (codec/box.h), padded like tensors. Time is one pass over the map at
// `bytes_per_second`, each way.
#pragma once

#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/schedule/workload.h"

namespace plimsoll::schedule {

std::vector<Encoding> offer_encodings(const ir::Graph& graph, const ir::Node& maker, ValueId value,
                                      double bytes_per_second);

}  // namespace plimsoll::schedule
