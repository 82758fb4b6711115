// Other shapes for the same elements: reshape, transpose, expand, tile, triangle, depth_to_space,
// space_to_depth, reorder.
//
// All of them are linear, so their gradients read nothing: the inverse movement, or a sum over
// copies. `reshape` moves no byte (its result lies in its input). `reorder` changes only the
// physical layout; layout passes insert it, models never do.
//
// Shapes are taken by value: a reference to the shape of another Var would dangle when the call
// that computes x, evaluated beside it, makes the graph grow.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

// As many elements as before; x itself when the shape is the same.
Var reshape(Var x, ir::Shape shape);
// An axis of extent 1 taken out or put in.
Var squeeze(Var x, int axis);
Var unsqueeze(Var x, int axis);
// Axes from `axis` on become one.
Var flatten(Var x, int axis = 1);
// Axis i of the result is axis perm[i] of x.
Var transpose(Var x, const ir::Ints& perm);
// x broadcasts to the shape; x itself when it has it.
Var expand(Var x, ir::Shape shape);
// The whole tensor so many times along each axis.
Var tile(Var x, const ir::Ints& repeats);
// Keeps the lower (or upper) triangle of the last two axes, zeroes the rest. Diagonal 0 is the main
// one, positive ones lie above it.
Var triangle(Var x, bool upper = false, std::int64_t diagonal = 0);
// NCHW: channels become block x block pixels; mode "DCR" (depth first) or "CRD".
Var depth_to_space(Var x, std::int64_t block, std::string_view mode = "DCR");
Var space_to_depth(Var x, std::int64_t block, std::string_view mode = "DCR");
Var reorder(Var x, const ir::Layout& layout);

}  // namespace plimsoll::ops
