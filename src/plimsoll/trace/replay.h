// The same allocations on any allocator: what would it have reserved, and how fast.
//
// A trace is compiled once into a list of operations on numbered blocks; every allocator runs that
// list. Ours runs for real, on a fake device with the handle sizes of the CUDA provider; the others
// are models of known policies, labelled so. Blocks that were live before the recording are
// allocated first, in address order; PyTorch's default policy starts from the recorded segments
// instead.
//
// A block is reusable at its free_completed event where the trace has them, else at its free.
// Streams are those of the trace. `stream_wait` events order streams for the checker, not for the
// allocators: PyTorch does not tell an allocator about them either.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::trace {

enum class Policy : std::uint8_t {
  kPlimsoll,
  kPytorch,
  kPytorchExpandable,
  kPytorchRoundup,
  kBestFit,
  kBuddy,
};

std::string_view to_string(Policy policy);
Result<Policy> policy_from(std::string_view text);
std::span<const Policy> all_policies();

struct ReplayOptions {
  Bytes capacity{0};         // 0: as much as is asked for
  double least_seconds = 0;  // ours only: repeat until this much time was measured
  bool timed = true;         // ours only: false saves the run that only measures
  double most_seconds = 0;   // of this thread; 0: no limit. What stops early is not `finished`
};

struct ReplayOutcome {
  Policy policy = Policy::kPlimsoll;
  bool finished = true;  // false: stopped by most_seconds, and the rest describes a part
  Bytes peak_reserved{0};
  double overhead = 0;  // reserved / live - 1
  std::int64_t device_allocations = 0;
  std::int64_t pages_remapped = 0;  // of 2 MiB
  std::int64_t mappings = 0;
  std::int64_t stream_waits = 0;
  double ns_per_operation = 0;
  std::int64_t out_of_memory = 0;
  // place in the trace; -1 also for one before its first event
  std::int64_t first_failed_event = -1;
  std::string first_failure;    // ours only: what holds the memory and what would help
  std::string order_violation;  // ours only: a reuse that was not ordered behind the last use; none
};

// One device of a trace, as operations on numbered blocks.
struct ReplayOperation {
  enum Kind : std::uint8_t { kAllocate, kFree, kWait, kRecordStream };
  Kind kind = kAllocate;
  std::uint32_t block = 0;
  std::int64_t bytes = 0;
  StreamId stream;
  StreamId peer;
};

struct ReplayProgram {
  std::vector<ReplayOperation> operations;
  std::uint32_t blocks = 0;
  std::size_t seeds = 0;  // operations that only build the state before the first event
  std::vector<std::uint64_t> initial_addresses;  // of the blocks the seeds allocate
  Bytes peak_live{0};
};

Result<ReplayProgram> compile_replay(const Trace& trace);

ReplayOutcome replay(const Trace& trace, const ReplayProgram& program, Policy policy,
                     const ReplayOptions& options);

}  // namespace plimsoll::trace
