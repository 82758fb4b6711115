// Who uses memory, and by which law it grows: what `plimsoll memory` prints.
//
// Logical bytes: every tensor of the graph counted once with its own bytes, by what it is for.
// Views and in-place updates add nothing. What of this is alive at one time is the plan's business;
// this table shows where bytes come from in the first place. Its total is "every result its own
// memory" of `plimsoll plan` (`baseline_bytes`): the same graph, in the layouts that are run, and
// the same rounding of tensors and scratch to kTensorAlignment.
//
// The law. Logical bytes are polynomials in the batch (degree one), in the sequence length (degree
// up to two) and in the number of repeated layers (degree one). The report builds the graph at a
// few sizes, solves for the coefficients in exact integer arithmetic, and keeps a law only if it
// also predicts one more size to the byte. Kernel scratch jumps with the algorithm a kernel
// chooses, so it is tabulated instead.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::report {

struct LayerBytes {
  std::string layer;
  std::array<Bytes, plan::kUseCount> by_use{};
  Bytes total() const;
};

// bytes(n) = constant + linear*n + quadratic*n^2, in units of 1/2 byte for the quadratic's sake.
struct Polynomial {
  std::int64_t twice_constant = 0;
  std::int64_t twice_linear = 0;
  std::int64_t twice_quadratic = 0;

  std::int64_t at(std::int64_t n) const {
    return (twice_constant + n * (twice_linear + n * twice_quadratic)) / 2;
  }
  bool operator==(const Polynomial&) const = default;
};

struct Law {
  std::string variable;   // "batch", "seq", "layers", or a dimension of a file
  std::int64_t here = 0;  // its value in this model
  // absent where no polynomial predicts
  std::array<std::optional<Polynomial>, plan::kUseCount> by_use;
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
  std::vector<Law> laws;
  std::vector<ScratchRow> scratch;
};

// "weights", "activations", ...: what by_use is indexed by.
std::string_view use_name(std::size_t use);

// Logical bytes by use of one graph, rounded as in a plan; temporaries are the kernels' scratch,
// all operators together.
std::array<Bytes, plan::kUseCount> logical_bytes(const ir::Graph& graph,
                                                 const ops::KernelTable& kernels);
std::vector<LayerBytes> bytes_by_layer(const ir::Graph& graph, const ops::KernelTable& kernels);

// The law in one variable, of bytes before rounding. `build` gives the graph at a value of it: at
// four neighbours from `here` up, or down to it where there is no larger one (a table of positions
// that ends there).
Result<Law> find_law(const std::string& variable, std::int64_t here,
                     const std::function<Result<ir::Graph>(std::int64_t)>& build);

}  // namespace plimsoll::report
