// Axes whose length a run decides, in graphs whose shapes are fixed: what NonZero finds.
//
// A mixture of experts sends each expert the tokens that its router gave it, and NonZero says
// which. Here the list of those tokens has a fixed length, its capacity, and what is not found is
// filled up with the index one past the end:
//
//   mask 0 1 0 1      NonZero, capacity 4:   1 3 4 4
//
// An index outside reads zero and writes nothing (ops/movement/indexing.h), so the rows that are
// too many go through the expert, each by itself, and nowhere. That holds as long as every row is
// by itself on the way: a sum over the rows, or an output of so many rows, would see them. So axes
// of such a length are followed from NonZero to where their rows are scattered, and a node that
// mixes them is refused by name.
#pragma once

#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/model/onnx/format/model_file.h"

namespace plimsoll::model::onnx {

// What NonZero found: [rank, capacity].
struct Found {
  ValueId places;
  ValueId count;  // how many there are, more than the capacity included
};

struct BoundedAxis {
  int axis = -1;    // none
  int origin = -1;  // which Found
  bool operator==(const BoundedAxis&) const = default;
};

// Names of lists that the file cuts into a fixed number of parts: NonZero ▶ Transpose ▶ Split.
std::unordered_set<std::string_view> lists_in_parts(const std::vector<WireBytes>& nodes);

// By value.
Result<std::vector<BoundedAxis>> bounded_axes(const ir::Graph& graph, std::span<const Found> found);
// Refuses outputs of such a length too.
Status check_bounded_axes(const ir::Graph& graph, std::span<const ValueId> outputs,
                          std::span<const Found> found);

}  // namespace plimsoll::model::onnx
