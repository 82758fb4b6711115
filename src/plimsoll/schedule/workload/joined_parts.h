// Concats that need no copy: where their inputs must be made so that they already lie side by side.
//
// From the last concat to the first. A concat whose inputs have no home yet gives them one inside
// its result (or inside the home its result has, when that is itself a part of something larger);
// one whose inputs turn out to lie side by side already, in order, costs nothing either. DenseNet's
// growing list of features,
//
//   c1 = concat(x, h1)   c2 = concat(c1, h2)   c3 = concat(c2, h3)
//
// becomes one buffer of c3's size in which x, h1, h2, h3 are made one behind the other.
//
// An input can get a home when some task makes it (reshapes of such a value count as it), nothing
// else decided where it lies, and the definition says that it is one run of bytes inside the
// result, at an aligned offset: the axis is the outermost of more than one, and the layout is
// row-major. Channels-last activations joined along their channels interleave, so those are copied.
//
// Cost: O(nodes + inputs of concats).
#pragma once

#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"

namespace plimsoll::schedule {

struct Home {
  ValueId root;  // of the graph; invalid: none
  Bytes offset;
  bool operator==(const Home&) const = default;
};

struct JoinedParts {
  std::vector<Home> home;    // by graph value: inside which result it must be made
  std::vector<bool> joined;  // by node: a concat for which nothing is left to do
};

JoinedParts find_joined_parts(const ir::Graph& graph, Bytes alignment = kTensorAlignment);

}  // namespace plimsoll::schedule
