// The in-place pairs of a node. A definition whose number of operands is open has pairs for the
// most it may have; a node has those of its own operands.
#pragma once

#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

inline std::vector<InPlace::Pair> pairs_of(const InPlace& rule, const ir::Node& node) {
  std::vector<InPlace::Pair> out;
  for (const InPlace::Pair& pair : rule.pairs()) {
    if (static_cast<std::size_t>(pair.output) < node.outputs.size() &&
        static_cast<std::size_t>(pair.input) < node.inputs.size())
      out.push_back(pair);
  }
  return out;
}

}  // namespace plimsoll::ops
