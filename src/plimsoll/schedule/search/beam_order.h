// Beam order: the order of first runs with the lowest peak, by many partial orders side by side.
//
// Neighbour swaps (order.h) end where every single move makes the peak worse. Here orders are built
// from the front. After d tasks a partial order is known by the *set* of tasks it has run: what is
// alive follows from the set, and only the peak so far depends on the way. So of two ways to one
// set the one with the lower peak is kept, and of all sets the `width` with the lowest peak so far,
// then with the fewest bytes alive, go on:
//
//   d = 1   {a} 4      {b} 6                  4 and 6 bytes alive
//   d = 2   {a,b} 7    {a,c} 5    {b,c} 9     {a,b} was reached twice: by its lower peak
//   d = 3   ...
//
// With a width beyond the number of sets it is the exact dynamic program; on layered graphs of ten
// tasks a layer a width of 300 finds what one of 1,000 finds.
//
// Cost: O(tasks · width · (tasks + values)) bytes copied, O(tasks · width · ready · degree) looks.
// Deterministic.
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/schedule/search/problem.h"

namespace plimsoll::schedule {

// Bytes that a beam of one partial order copies: what a width is chosen by.
std::int64_t beam_bytes(const Problem& problem);

// Empty when `stop` says so before the end; it is asked once a task.
std::vector<Index> beam_order(const Problem& problem, Index width,
                              const std::function<bool()>& stop);

}  // namespace plimsoll::schedule
