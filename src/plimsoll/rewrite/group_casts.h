// Casts of weights to 16 bits in one kernel, sixteen at a time.
//
//   cast x 356 of whisper-small   ->   cast_group x 22, where the first of its casts stood
//
// Mixed precision casts every weight once in a step, and starting a kernel takes longer than
// casting most of them. What is cast stays until the backward pass anyway; in a group it is there a
// few operators earlier, so weights of more than 4 Mi elements are cast alone (alexnet's would be
// 80 MiB earlier there).
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> group_casts(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
