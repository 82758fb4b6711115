// Rows of a table that is also there narrow, looked up in the narrow one.
//
//   gather(w, ids) ... linear(h, cast(w))   ->   cast(gather(c, ids)) ... linear(h, c), c = cast(w)
//
// In mixed precision a tied table is read twice: rows of it in fp32, and its cast by the last
// layer. Ranks that share their state gather a weight for those who read it: one narrow table is
// half of what the wide one is, 77 instead of 154 MB for gpt2's. Rows are rounded where they are
// looked up, as all else that is computed with.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> narrow_lookups(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
