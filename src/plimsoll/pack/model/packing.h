// The answer of the packer: where every buffer lies, how good that is, and what is proven about it.
//
// `height` is the first byte above every buffer of memory 0 (of the one memory, in most problems).
// `lower_bound` is a height that no packing can go below; status says what the two mean:
//
//   kOptimal     height cannot be smaller (height == lower_bound, or search has proven it)
//   kFeasible    valid, within the capacity if there is one; a smaller height may exist
//   kInfeasible  proven: no packing fits the capacity. `core` names buffers that alone do not fit
//   kUnknown     the time was too short to find a packing within the capacity or to refute one
//
// Under kInfeasible and kUnknown `offsets` still hold the best packing found with the capacity
// ignored, when there is one (they are empty when fixed offsets contradict each other).
#pragma once

#include <string>
#include <vector>

#include "plimsoll/pack/model/problem.h"

namespace plimsoll::pack {

enum class PackStatus : std::uint8_t { kOptimal, kFeasible, kInfeasible, kUnknown };

const char* name(PackStatus status);

struct Packing {
  std::vector<Offset> offsets;         // one per buffer
  std::vector<std::uint8_t> memories;  // one per buffer; empty: all in memory 0
  std::vector<Bytes> heights;          // one per memory
  Bytes lower_bound;                   // for memory 0
  double cost = 0;                     // sum of size * cost_per_byte
  PackStatus status = PackStatus::kUnknown;
  std::string method;          // what found it: "skyline area", "point-cover", ...
  std::vector<BufferId> core;  // only under kInfeasible
  std::int64_t moved = 0;      // buffers with a hint that do not lie there
  double seconds = 0;
  bool interrupted = false;  // PackOptions::stop was raised

  Bytes height() const { return heights.empty() ? Bytes(0) : heights.front(); }
  bool fits() const { return status == PackStatus::kOptimal || status == PackStatus::kFeasible; }
  // How far above the bound, as a fraction of it; 0 when nothing is alive.
  double gap() const;
};

}  // namespace plimsoll::pack
