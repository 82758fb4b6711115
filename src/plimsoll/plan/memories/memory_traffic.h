// What a plan reads and writes, buffer by buffer: the part of it that can lie in another memory.
//
// A *touch* is one step using one buffer. For every touch it is known what the bytes cost in every
// memory, so the time of a step follows from where its buffers lie. Between two touches a buffer is
// idle: there it may move.
//
//   step     0 conv     1 relu     2 conv     3 add
//   buffer   x ──────────────────────────────▶ x       touches of x: 0 and 3
//            h          h          h                   in place: one buffer, three touches
//
// Which graph value a buffer holds after each touch is kept too: a move copies that value.
// Movable are buffers that steps fill from their beginning, whole; parts that are joined in one
// buffer stay where they are.
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/plan/plan.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::plan {

// Of a step, a buffer or a touch, as a place in a vector.
inline std::size_t as_index(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

using CostPartsOf = std::function<schedule::CostParts(const ir::Graph&, const ir::Node&)>;

struct Touch {
  std::int32_t step = 0;
  bool writes = false;
  // Share of the step's bytes that it reads and writes here.
  double read_bytes = 0;
  double written_bytes = 0;
  ValueId holds;  // what the buffer holds after it
};

struct BufferTraffic {
  std::vector<Touch> touches;  // by step
  bool movable = false;
  bool source = false;   // has content before the first step
  bool lasting = false;  // its content is wanted after the last step
  bool written = false;
  ValueId begins_with;  // of a source
};

struct StepTraffic {
  schedule::CostParts parts;
  double home_seconds = 0;  // of memory, with everything in device memory
  std::vector<std::pair<std::int32_t, std::int32_t>> touches;  // (buffer, which of its touches)
};

struct MemoryTraffic {
  std::vector<BufferTraffic> buffers;  // of the plan, scratch included
  std::vector<StepTraffic> steps;
};

MemoryTraffic traffic_of(const Plan& plan, const CostPartsOf& cost, double home_bytes_per_second);

}  // namespace plimsoll::plan
