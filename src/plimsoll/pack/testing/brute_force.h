// The packer's referee in tests: tries every offset of every buffer.
//
// Knows the rules of problem.h from the text, not from the engines: pairs of boxes, groups,
// classes, slabs, ends. For problems of up to 8 buffers with sizes of a few bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/model/problem.h"

namespace plimsoll::pack::testing {

struct Best {
  std::optional<std::int64_t> height;  // nothing: no packing exists at all
  bool known = true;                   // false: gave up after 50,000 nodes
};

// The smallest height of memory 0 (all buffers live there).
Best best_height(const Problem& problem);

// The least cost over all assignments to memories whose capacities hold; nothing when there is
// none.
std::optional<double> least_cost(const Problem& problem);

struct Mix {
  bool alignment = true, gaps = true, fixed = true, hints = true, groups = true, classes = true;
  bool clocks = true, ends = true, slabs = true;
};

// A random problem of 1 to `most` buffers; each kind of rule appears in a part of the problems.
Problem random_small(Random& random, int most, const Mix& mix);

}  // namespace plimsoll::pack::testing
