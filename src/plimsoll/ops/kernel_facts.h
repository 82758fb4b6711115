// What only a kernel knows about an operator, as plain data, so that planning needs no kernels.
//
// Kernels fill the table on the machine that runs; a shipped profile fills it elsewhere. Rewrite,
// schedule and plan receive it and never ask a kernel themselves.
#pragma once

#include <string>
#include <unordered_map>

#include "plimsoll/base/units.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::ops {

struct KernelFacts {
  Bytes scratch;  // exact; alive during the step only
  bool in_place =
      true;            // false: this kernel reads behind its write, whatever the definition allows
  double seconds = 0;  // measured; 0 when not
  // Which ways of a library it takes (kernels/cuda/engine_trail.h); empty: there is one way.
  std::string engine = {};
  bool operator==(const KernelFacts&) const = default;
};

// "relu(fp32[8,64,56,56]@0231)->(fp32[8,64,56,56]@0231){}": operator, types with layouts,
// attributes. Two nodes with one signature have the same facts and can share one kernel.
std::string signature(const ir::Graph& graph, const ir::Node& node);

struct KernelTable {
  std::unordered_map<std::string, KernelFacts> facts;
  // The defaults above for a signature that is not there.
  KernelFacts of(const ir::Graph& graph, const ir::Node& node) const;
};

}  // namespace plimsoll::ops
