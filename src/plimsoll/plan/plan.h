// The plan: every byte of a step has its place before the first step runs.
//
//   steps      what runs, in order, each with the slots it reads and writes
//   buffers    bytes with a lifetime (in steps) and an offset in an arena
//   arenas     one contiguous range each: 0 is device memory, 1 (when anything is swapped) host,
//              from 2 on memories that are nearer to the operators (memories/place_in_memories.h)
//
//   step 0  matmul  in x w    out h        x  ████████████
//   step 1  relu    in h      out h        w  ████████████  h is written over: one buffer
//   step 2  ...                            h  ████────────
//
// A slot is a buffer and an offset inside it: views point into the buffer they look at. A chain of
// results that take over each other's memory is one buffer. Kernel scratch is a buffer alive for
// one step. Sources (weights, optimizer state, the batch) have a slot at the start of the step;
// results and the next version of every state have one at its end, and a state's next version lies
// where the state lay, so that steps can follow each other.
//
// Steps run on streams: 0.. are compute streams, then come copies out and in when anything is
// swapped, then the collectives of ranks. On one stream steps run in list order; across streams a
// step waits for those it names.
//
// A Plan holds its graph: it can be stored, checked and run alone. Plain data; the verifier is
// check_plan.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/units.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"

namespace plimsoll::plan {

struct Slot {
  BufferId buffer;  // invalid: an absent optional input
  Bytes offset;
  bool operator==(const Slot&) const = default;
};

using StepKind = schedule::ActionKind;
inline constexpr int kStepKindCount = 7;
std::string_view name(StepKind kind);

struct PlanStep {
  StepKind kind = StepKind::kCompute;
  std::uint8_t stream = 0;
  NodeId node;        // compute, recompute
  ValueId value;      // the others: the graph value that is moved, encoded or dropped
  std::string codec;  // encode, decode
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  Slot scratch;
  std::vector<std::uint32_t> waits;  // steps on other streams that must be done
  double seconds = 0;                // predicted
  bool operator==(const PlanStep&) const = default;
};

// What a buffer's bytes are, in the words of `plimsoll memory`.
enum class Use : std::uint8_t {
  kInput,
  kOutput,
  kWeight,
  kOptimizer,
  kActivation,
  kGradient,
  kTemporary
};
inline constexpr int kUseCount = 7;
std::string_view name(Use use);  // "inputs", "outputs", "weights", ...
Use use_of(const ir::Graph& graph, ValueId value, bool is_output);

struct PlanBuffer {
  std::string name;
  ValueId value;  // the graph value it holds first; invalid for scratch
  Bytes bytes;
  Use use = Use::kActivation;
  std::uint8_t arena = 0;
  Offset offset;
  Interval<Step> lifetime;  // in steps of the plan
  bool operator==(const PlanBuffer&) const = default;
};

struct Arena {
  std::string name;
  Bytes bytes;
  bool operator==(const Arena&) const = default;
};

struct ValueSlot {
  ValueId value;
  Slot slot;
  bool operator==(const ValueSlot&) const = default;
};

// The machine a plan was made for: kernels elsewhere may want other scratch.
struct Environment {
  std::string device = "cpu";
  int threads = 0;
  std::string instruction_set;
  std::string kernel_library;
  bool operator==(const Environment&) const = default;
};

// Where the content of the weights lies that a plan's graph takes from a file, and how that file
// was imported: enough to get the same weights again, and to see that they are no longer the same.
struct WeightsOrigin {
  struct File {
    std::string name;  // of external data, below the model's folder; empty: the model itself
    Bytes bytes;
    std::string hash;  // base/content_hash.h
    bool operator==(const File&) const = default;
  };
  // Relative: below the folder of the plan's file. Absolute: elsewhere; `run` wants it named.
  std::string model;
  std::vector<File> files;
  bool training = false;
  bool untied = false;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> seq;
  std::map<std::string, std::int64_t> dims;
  bool operator==(const WeightsOrigin&) const = default;
};

struct Proof {
  Bytes load;         // most bytes alive at any step
  Bytes lower_bound;  // no packing of these buffers is smaller
  bool optimal = false;
  bool operator==(const Proof&) const = default;
};

struct Plan {
  ir::Graph graph;
  Environment environment;
  std::vector<PlanStep> steps;
  std::vector<PlanBuffer> buffers;
  std::vector<Arena> arenas;
  std::vector<ValueSlot> sources;  // every source of the graph, where it lies when the step begins
  std::vector<std::vector<BufferId>> contiguous;  // buffers that lie one behind the other, in order
  // outputs and next versions of state, where they lie when it ends
  std::vector<ValueSlot> results;
  std::optional<WeightsOrigin> weights;  // absent: every source begins from the seed
  // Which ways of their library the kernels take, by operator signature
  // (kernels/cuda/engine_trail.h): others take other scratch and leave other bits. One that is not
  // named chooses where it runs.
  std::map<std::string, std::string> engines;
  Proof proof;
  Bytes budget;                                  // zero: none was given
  Bytes alignment = schedule::kTensorAlignment;  // of every buffer and value
  double predicted_seconds = 0;

  Bytes arena_bytes() const { return arenas.empty() ? Bytes(0) : arenas.front().bytes; }
  // Of all arenas but the host's.
  Bytes device_bytes() const {
    Bytes out;
    for (std::size_t a = 0; a < arenas.size(); ++a) out += a == 1 ? Bytes(0) : arenas[a].bytes;
    return out;
  }
  const PlanBuffer& buffer(BufferId id) const { return buffers[id.index()]; }
  bool operator==(const Plan&) const = default;
};

// Lossy forms that values of the plan wait in, by the names of their codecs; none: every bit comes
// back.
std::vector<std::string> lossy_forms_of(const Plan& plan);

// Where a slot begins in its arena.
inline Offset place_of(const Plan& plan, const Slot& slot) {
  return plan.buffer(slot.buffer).offset + slot.offset;
}

// Device bytes alive at every step; its maximum is the load.
std::vector<Bytes> bytes_by_step(const Plan& plan);
// Bytes by use at the step where most are alive, indexed by Use.
std::vector<Bytes> bytes_by_use_at_peak(const Plan& plan);

// What waits in device memory for the backward pass: the results of the forward pass that are alive
// when the first backward operator runs, and what the same maps would take at four bytes an
// element. Zero without a backward pass.
struct Held {
  Bytes bytes;
  Bytes as_fp32;
};
Held held_for_backward(const Plan& plan);

}  // namespace plimsoll::plan
