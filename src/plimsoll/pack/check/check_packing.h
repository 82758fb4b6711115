// The independent checker: is this packing right?
//
// It shares no code with the engines: it reads the Problem and the offsets, and asks every rule of
// problem.h in turn. The first broken rule comes back as an error that names the buffers and both
// values. check_packing() sweeps time with the buffers alive sorted by offset, n log n; under
// clocks it sweeps space, where the buffers that use one byte must form a chain.
// check_packing_slowly() asks every pair and is meant for tests, and for clocks together with
// classes or ends.
//
// Heights are recomputed and compared with what the packing claims; when it claims to fit, the
// capacities are checked too.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/pack/model/packing.h"

namespace plimsoll::pack {

Status check_packing(const Problem& problem, const Packing& packing);
Status check_packing_slowly(const Problem& problem, const Packing& packing);

// The first byte above everything that is ever held, per memory, of a packing that was checked.
std::vector<Bytes> packed_heights(const Problem& problem, const Packing& packing);

}  // namespace plimsoll::pack
