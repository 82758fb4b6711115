// The inline part of scatter_reduction.h.
#pragma once

#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/elementwise/comparison.h"

namespace plimsoll::ops {

// With 'mul' an update's adjoint is the product of all others at its place: all divided by its own,
// but for zeros. A product without them, and how many there were, tells: beside another zero the
// adjoint is 0, a lone zero gets the rest.
template <typename Read, typename Write>
std::vector<Var> product_gradient(const Backward& g, Read read, Write write) {
  std::vector<Var> out(3);
  if (g.wants(0)) out[0] = write(g.dy(), g.in(2), "mul");
  if (!g.wants(2)) return out;
  const Var zero = number(g.dy(), 0);
  const Var one = number(g.dy(), 1);
  const Var vanishes = equal(g.in(2), zero);
  const Var divisors = where(vanishes, one, g.in(2));
  const Var flowing = g.dy() * write(g.in(0), divisors, "mul");
  const Var zeros = write(zeros_like(g.in(0)), where(vanishes, one, zeros_like(g.in(2))), "add");
  out[2] = where(vanishes, read(where(equal(zeros, one), flowing, zero)),
                 read(where(equal(zeros, zero), flowing, zero)) / divisors);
  return out;
}

// For max and min a place belongs to the data when the data's element is the result, otherwise to
// the updates that are.
template <typename Read, typename Write>
std::vector<Var> scatter_gradient(const Backward& g, Read read, Write write) {
  const Reduction reduction = reduction_of(g.attributes);
  std::vector<Var> out(3);
  switch (reduction) {
    case Reduction::kNone:
      if (g.wants(0)) out[0] = write(g.dy(), zeros_like(g.in(2)), "none");
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
      return product_gradient(g, read, write);
  }
  return out;
}

}  // namespace plimsoll::ops
