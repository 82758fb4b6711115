// A step of a program that pages, on a clock that nobody waits for: what it would copy, and when it
// would be over.
//
// Bookkeeping alone: the pager says what is copied (pager.h), the bytes say what waits for what
// (access_order.h), and every command takes what it is said to take on its stream, behind those it
// waits for and not before the host has enqueued it.
//
//   compute   ─ conv ─ conv ─────────── conv     makespan: the end of the last command
//   out            └─ activation ─┐
//   in                            └─ weight ─┘   where there is no room before that is gone
//
// It answers two questions before anything runs. How a policy should look ahead in this program and
// this capacity: chosen_options() rehearses a few ways and takes the quickest, because what breaks
// up the room for large tensors is no matter of rules. And what nobody can beat who only copies:
//
// ForcedCopies. While a launch runs, its operands and all that is needed behind it and was made
// before are there or at home. What exceeds the capacity came to be at home before, and must come
// back behind: so out goes before in, and the two directions of the bus do not help each other.
// Where the activations of a forward pass are most of the memory, this is the bound, and not the
// larger of the two directions.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/runtime/paging/paged_program.h"
#include "plimsoll/runtime/paging/pager.h"

namespace plimsoll::runtime {

// What streams and the host take. By default a card on PCIe 5.
struct PagingRates {
  double out_bytes_per_second = 55e9;
  double in_bytes_per_second = 55e9;
  double copy_latency_seconds = 2e-6;
  double launch_host_seconds = 6e-6;  // of the host, to enqueue a launch
  double copy_host_seconds = 3e-6;
};

struct RehearsedStep {
  double seconds = 0;
  PagingCounts counts;
};

// The last of a few steps. kDoesNotFit as the pager says it.
Result<RehearsedStep> rehearse(const PagedProgram& program, const PagingOptions& options,
                               const PagingRates& rates = {});

// The options with the ways of looking ahead that make the program quickest.
Result<PagingOptions> chosen_options(const PagedProgram& program, const PagingOptions& options,
                                     const PagingRates& rates = {});

// At the launch where they are most: what must have gone out before it, and come in behind it.
struct ForcedCopies {
  Bytes out;
  Bytes in;
};
ForcedCopies forced_copies(const PagedProgram& program, Bytes capacity);

// The same with the computing before that launch and behind it, of all launches: what no program
// can beat that only copies.
double least_seconds(const PagedProgram& program, Bytes capacity, const PagingRates& rates = {});

}  // namespace plimsoll::runtime
