// What sources hold before the first step: weights and state as their Init says, synthetic batches.
//
// Content depends on the seed, the source's name and, for inputs, the number of the step; never on
// the order in which sources are filled, on the executor, or on the number of threads. So two
// strategies started with one seed train the same model on the same data.
#pragma once

#include <cstdint>
#include <span>

#include "plimsoll/ir/graph.h"
#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

// Which part of a batch that several ranks share is wanted: an input of [b, ...] is rows rank * b
// and following of a batch of ranks * b, so that all ranks together see what one would see.
struct BatchPart {
  int rank = 0;
  int ranks = 1;
};

// Fills the memory of one source. An input without an Init gets normal numbers (floats) or zeros
// (integers); with a uniform Init, integers in [a, b). Sources of Init::kFile are left alone: their
// content comes from a file.
void fill_source(const ir::Value& value, std::uint64_t seed, std::uint64_t step,
                 std::span<std::byte> memory, BatchPart part = {});
// Of a weight that lies row by row, elements first to first + so many as there is memory for.
void fill_elements(const ir::Value& value, std::uint64_t seed, std::int64_t first,
                   std::span<std::byte> memory);
// The same for a source of an executor.
Status fill_source(Executor& executor, ValueId source, std::uint64_t seed, std::uint64_t step,
                   BatchPart part = {});

}  // namespace plimsoll::runtime
