// The inline part of scatter_reduction.h.
#pragma once

#include "plimsoll/ops/binary.h"
#include "plimsoll/ops/cast.h"
#include "plimsoll/ops/comparison.h"

namespace plimsoll::ops {

// For max and min a place belongs to the data when the data's element is the result, otherwise to
// the updates that are.
template <typename Read, typename Write>
std::vector<Var> scatter_gradient(const Backward& g, Read read, Write write) {
  const Reduction reduction = reduction_of(g.attributes).value_or(Reduction::kNone);
  std::vector<Var> out(3);
  switch (reduction) {
    case Reduction::kNone:
      if (g.wants(0)) out[0] = write(g.dy(), zeros_like(g.in(2)));
      if (g.wants(2)) out[2] = read(g.dy());
      break;
    case Reduction::kAdd:
      if (g.wants(0)) out[0] = g.dy();
      if (g.wants(2)) out[2] = read(g.dy());
      break;
    case Reduction::kMax:
    case Reduction::kMin: {
      const Var zero = number(g.dy(), 0);
      const Var kept = equal(g.in(0), g.out(0));
      if (g.wants(0)) out[0] = where(kept, g.dy(), zero);
      if (g.wants(2)) {
        const Var flowing = read(where(kept, zero, g.dy()));
        out[2] = where(equal(g.in(2), read(g.out(0))), flowing, zero);
      }
      break;
    }
    case Reduction::kMul:
      g.builder.fail("a scatter with reduction 'mul' has no gradient");
      break;
  }
  return out;
}

}  // namespace plimsoll::ops
