// The simple planner, step by step: tags handed from value to value.
//
// Every value has a counter: how many readers are still to come. A node that runs takes a tag (a
// piece of memory) for its result: an input's tag when that input is read for the last time here
// and the operator works in place, else one from the set of free tags, else a new one. Then the
// counters of its inputs go down, and a tag whose counter reaches zero is free again.
//
//   exp(a*b + 3):   c = a*b     takes red       counters a:0 b:0
//                   d = c+3     takes red over  c:0
//                   e = exp(d)  takes red over  d:0
//
// One colour does for the whole expression. This is the walk people learn the idea with, and what
// `plimsoll plan MODEL --explain` prints; the real planner decides offsets, not tags.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/ir/graph.h"

namespace plimsoll::plan {

struct TagStep {
  NodeId node;
  std::vector<int> tags;   // of the outputs
  bool in_place = false;   // output 0 took an input's tag
  std::vector<int> freed;  // tags whose counter reached zero here
  std::vector<int> free;   // free tags afterwards, ascending
};

struct TagWalk {
  std::vector<TagStep> steps;
  int tags = 0;  // how many were needed for values that nodes make
};

// Sources keep their own memory and have no tag. Views share their input's tag.
TagWalk walk_tags(const ir::Graph& graph, bool in_place = true);

// The walk as text, one line a step.
std::string to_string(const ir::Graph& graph, const TagWalk& walk);

}  // namespace plimsoll::plan
