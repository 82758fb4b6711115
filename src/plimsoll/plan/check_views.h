// Which bytes a value consists of when nobody computes it: the plan verifier's own rule.
//
// A plan need not run a node whose result is already there: a reshape, a slice or split that is one
// run of its input's bytes, a concat whose parts were made side by side. The planner asks the
// operators' definitions for such views; this asks nobody.
//
// A reshape keeps the order of the elements, so it is a view where the n-th element lies at the
// same place under both types; a transposition or a reorder keeps every element's indices, so it is
// one where the neighbours along each axis stay as far apart ([N, C, H, W] channels last and
// [N, H, W, C]). The others say "the part of `whole` that begins here and takes these
// steps along each axis", and a part is one run of bytes where elements that are neighbours in it
// are just as far apart in the whole:
//
//   x[4,6], elements 6 and 1 apart       x[1:3, :] is [2,6], 6 and 1 apart: one run, from 6 on
//                                        x[:, 1:4] is [4,3], 3 and 1 apart: none
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/ir/graph.h"

namespace plimsoll::plan {

// From byte `begin` on, the result is bytes [from, from + bytes) of `value`.
struct ViewPiece {
  std::int64_t begin = 0;
  ValueId value;
  std::int64_t from = 0;
  std::int64_t bytes = 0;
};

// The whole of the result, in order; nothing when it has to be computed. The graph is verified.
std::vector<ViewPiece> pieces_of_view(const ir::Graph& graph, const ir::Node& node,
                                      std::size_t output);

}  // namespace plimsoll::plan
