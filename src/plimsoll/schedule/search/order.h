// Order: an order of first runs in which less is alive at once.
//
// A list schedule (of the ready tasks run the one that frees most) and then single-task moves by
// neighbour swaps. Swapping two neighbours changes the bytes at two places only, so a move of any
// length costs O(length · degree). What is minimised is the area above the budget first (bytes ·
// steps that some remedy would have to pay for), then the sum of squares, which pulls every hump
// down. Reordering alone beats the proven optimum of a fixed order in places: a weight gradient run
// early frees an activation that would otherwise have to be recomputed.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/search/problem.h"
#include "plimsoll/schedule/search/search_options.h"

namespace plimsoll::schedule {

std::vector<Index> list_order(const Problem& problem, const OrderSearchOptions& options = {});

// One result after the other: all that the first sink of the given order needs, then what the
// second needs beside it, and so on, each in the given order. An unrolled network adds up the
// gradients of all its layers side by side, step by step back in time; this order finishes one
// layer after the other, so that only one layer's sums are alive.
std::vector<Index> sink_order(const Problem& problem);

// The same for a graph with a forward and a backward half (tasks before `first_backward` and the
// others): sinks that need much of the same are finished together (the two weights of one recurrent
// layer), and the forward half is turned around, so that what the backward half is done with last
// is made first. The forward half of an unrolled network then goes layer by layer too, and pieces
// of it (segments.h) are pieces of one layer.
std::vector<Index> mirror_order(const Problem& problem, Index first_backward,
                                const OrderSearchOptions& options = {});

// Improves an order by at most `swaps` neighbour swaps tried.
std::vector<Index> lower_order(const Problem& problem, std::vector<Index> order,
                               std::int64_t budget, std::int64_t swaps, Random& random,
                               const OrderSearchOptions& options = {});

// Bytes alive while the task at each position runs, scratch included, nothing recomputed.
std::vector<std::int64_t> bytes_over_time(const Problem& problem, const std::vector<Index>& order);

}  // namespace plimsoll::schedule
