// Who uses memory, and by which law it grows: what `plimsoll memory` prints.
//
// Logical bytes: every tensor of the graph counted once with its own bytes, by what it is for.
// Views and in-place updates add nothing. What of this is alive at one time is the plan's business;
// this table shows where bytes come from in the first place. Its total is "every result its own
// memory" of `plimsoll plan` (`baseline_bytes`): the same graph, in the layouts that are run, and
// the same rounding of tensors and scratch to kTensorAlignment.
//
// The law. Logical bytes grow with every option of a model as report/growth.h says: polynomials, at
// steps of one or of a period, and shares. The report builds the graph at a few sizes, solves for
// the coefficients in exact integer arithmetic, and keeps a law only if it also predicts other
// sizes, half and twice as large among them, to the byte (report/find_law.h).
//
// What a kernel chooses by its operands' sizes jumps: scratch, and weights in blocks. Tensors and
// scratch that have a law are summed in one; the others are counted and tabulated.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/report/growth.h"

namespace plimsoll::report {

struct LayerBytes {
  std::string layer;
  std::array<Bytes, plan::kUseCount> by_use{};
  Bytes total() const;
};

// Tensors, or operators' scratch, that no law predicts, by size.
struct Jumping {
  std::int64_t tensors = 0;
  std::vector<std::pair<std::int64_t, Bytes>> at;  // size and bytes
};

struct Law {
  std::string variable;     // "batch", "width", "copies", ..., or a dimension of a file
  std::int64_t here = 0;    // its value in this model
  std::int64_t period = 1;  // it holds at here + k * period
  // of everything but what jumps; absent where nothing predicts
  std::array<std::optional<Growth>, plan::kUseCount> by_use;
  std::array<Jumping, plan::kUseCount> jumping;
};

struct ScratchRow {
  std::optional<std::int64_t> batch;  // absent where the model does not say which size that is
  Bytes largest;                      // of any one operator
  std::string operator_name;
};

struct MemoryReport {
  std::array<Bytes, plan::kUseCount> by_use{};
  Bytes total;
  std::int64_t parameters = 0;
  std::vector<LayerBytes> by_layer;
  std::vector<Law> laws;       // of sizes
  std::vector<Law> rank_laws;  // of one rank: "copies" that keep everything, "shards" of state
  // Sizes whose laws were not looked for, because graphs of this many operators take too long.
  std::vector<std::string> left_out;
  std::vector<ScratchRow> scratch;
};

inline constexpr auto kScratchUse = static_cast<std::size_t>(plan::Use::kTemporary);
// "weights", "activations", ...: what by_use is indexed by.
std::string_view use_name(std::size_t use);

// Logical bytes by use of one graph, rounded as in a plan; temporaries are the kernels' scratch,
// all operators together.
std::array<Bytes, plan::kUseCount> logical_bytes(const ir::Graph& graph,
                                                 const ops::KernelTable& kernels);
std::vector<LayerBytes> bytes_by_layer(const ir::Graph& graph, const ops::KernelTable& kernels);

// Every value that has bytes of its own, before rounding.
void for_each_tensor(const ir::Graph& graph, const std::function<void(ValueId, plan::Use)>& visit);

}  // namespace plimsoll::report
