// Inputs whose elements name something: labels name classes, tokens name rows of a table.
//
// One that names nothing has a defined meaning in a kernel (a row of zeros, a loss of NaN), but in
// data that somebody gives it is a mistake, and the number that comes out of it would say nothing
// of where. So data is compared with what the graph reads it as, before every step: both are known,
// and comparing costs nothing beside the step.
//
// An input is followed through views, copies and casts to other integers, and through the slices
// that micro-batches are made of. What is computed (labels shifted by one) is not followed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/ir/graph.h"

namespace plimsoll::runtime {

struct IndexRange {
  ValueId input;
  // which of its elements are read so, in row-major order: [first, end)
  std::int64_t first = 0;
  std::int64_t end = 0;
  // what they may be: [low, high)
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::optional<std::int64_t> ignored;  // or this
  std::string reader;                   // "cross_entropy", or "embeddings/gather"

  bool allows(std::int64_t index) const {
    return (index >= low && index < high) || (ignored && index == *ignored);
  }
};
std::vector<IndexRange> index_ranges(const ir::Graph& graph);

struct BadIndex {
  std::int64_t element = 0;  // in row-major order
  std::int64_t value = 0;
};
// The first element that names nothing. Allocates nothing.
std::optional<BadIndex> find_bad_index(const ir::Value& input, std::span<const std::byte> content,
                                       const IndexRange& range);

// "input 'labels': element [3, 7] is 1000; cross_entropy takes 0 to 999, or -100 for none".
std::string describe(const ir::Value& input, const IndexRange& range, const BadIndex& bad);

}  // namespace plimsoll::runtime
