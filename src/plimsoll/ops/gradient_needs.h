// Which tensors a gradient reads: the minimum that has to survive until the backward pass.
//
// Nobody writes this down: the gradient rule builds ordinary nodes, so we build it once, over
// sources that stand for the inputs, the outputs and the adjoints of one call, and look at what the
// nodes that lead to its results read. `mul` reads its other operand, `exp` its output, `add`
// nothing.
//
//   mul(fp64[2],fp64[2])   sketch:  in0 in1 | out0 | dy0        needs: in0, in1
//                                   d0 = mul dy0 in1
//                                   d1 = mul dy0 in0
// A gradient by decomposition starts again from the inputs, so it needs those and no output.
//
// The sketch itself is part of the interface: a test fills every source that is not needed with
// NaN, runs it, and compares.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::ops {

struct GradientNeeds {
  std::vector<bool> inputs;
  std::vector<bool> outputs;
  bool operator==(const GradientNeeds&) const = default;
};

// The gradient of one call alone. Sources are named in0, in1, ..., out0, ... and dy0, ...; the
// graph's outputs are the adjoints that exist.
struct GradientSketch {
  ir::Graph graph;
  std::vector<ValueId> inputs;  // an absent input is an invalid id
  std::vector<ValueId> outputs;
  std::vector<ValueId> adjoints;  // of the outputs; invalid for those that are no floats
  std::vector<ValueId> results;   // per input; invalid where nothing flows back
};

// For a definition with a rule of its own and inputs of these types (null where absent); every
// float input's adjoint is asked for unless `wanted` says otherwise.
Result<GradientSketch> sketch_gradient(const OpDefinition& definition, const Call& call,
                                       const std::vector<bool>& wanted = {});

Result<GradientNeeds> gradient_needs(const OpDefinition& definition, const Call& call,
                                     const std::vector<bool>& wanted = {});
Result<GradientNeeds> gradient_needs(const ir::Graph& graph, const ir::Node& node,
                                     const std::vector<bool>& wanted = {});

// "mul reads in0 in1", "exp reads out0", "add reads nothing".
std::string to_string(std::string_view op, const GradientNeeds& needs);

}  // namespace plimsoll::ops
