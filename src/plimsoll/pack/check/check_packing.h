// The verifier of packings: is this packing right?
//
// It calls no function of the packer: it knows the plain data of Problem and Packing, and asks
// every rule of problem.h in turn. The first broken rule comes back as an error that names the
// buffers and both values.
//
//   places      aligned, at the fixed offset, in a memory that exists and is allowed, in one slab
//   groups      contiguous ones follow each other, co-located ones share their first byte
//   heights     recomputed and compared with what the packing claims; when it claims to fit, with
//               the capacities too
//   overlap     one sweep through space: the boxes over one byte, sorted by their beginning, must
//               come one after another, so that a new one is compared with its neighbours only
//   ends        one sweep through time: no front buffer alive reaches above a back buffer alive
//
// Cost: n log n, and each box beside a co-located class is compared with all of its members there.
// Ends together with clocks are asked pair by pair: clocks have no one time to sweep through.
// check_packing_slowly() asks every pair of boxes about overlap and ends: the verifier's verifier.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/pack/model/packing.h"

namespace plimsoll::pack {

Status check_packing(const Problem& problem, const Packing& packing);
Status check_packing_slowly(const Problem& problem, const Packing& packing);

// The first byte above everything that is ever held, per memory, of a packing that was checked.
std::vector<Bytes> packed_heights(const Problem& problem, const Packing& packing);

}  // namespace plimsoll::pack
