// Packing problems and packings as CSV, the way MiniMalloc writes them.
//
//   id,lower,upper,size[,alignment][,gaps][,offset][,hint][,...]
//
// The header names the columns, in any order; id, lower, upper and size must be there, unknown ones
// are an error. Lifetimes are half-open. `offset` is a fixed place (empty or -1: free); in a
// packing it is the answer. `gaps` is a blank-separated list of `from-to` or `from-to:lo-hi` (only
// the window [lo, hi) of the buffer is in use). An empty cell means the default. Lines may end in
// CR LF; blank lines are skipped.
//
// The reader trusts nothing: every error names line and column, numbers are checked for overflow,
// ids must be unique, and memory is proportional to the input.
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/pack/model/packing.h"

namespace plimsoll::pack {

Result<Problem> read_csv(std::string_view text);

// The problem's own columns; with a packing, also its offsets (as column `offset`).
std::string write_csv(const Problem& problem, const Packing* packing);

// The offsets of a packing file for `problem`: matched by id, so lines may be in any order.
Result<Packing> read_packing_csv(const Problem& problem, std::string_view text);

// The offsets of an older packing as hints, by id. Buffers that are new keep their own hint; those
// that are gone do not matter.
Status take_hints_csv(Problem& problem, std::string_view text);

}  // namespace plimsoll::pack
