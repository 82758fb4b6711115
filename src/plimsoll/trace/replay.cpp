#include "plimsoll/trace/replay.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <limits>

#include "plimsoll/base/checked.h"
#include "plimsoll/memory/caching_allocator.h"
#include "plimsoll/memory/fake_device.h"
#include "plimsoll/memory/offset_allocator.h"
#include "plimsoll/memory/page_map.h"
#include "plimsoll/trace/order_checker.h"
#include "plimsoll/trace/pytorch_model.h"

namespace plimsoll::trace {
namespace {

constexpr std::array<Policy, 6> kPolicies = {Policy::kPlimsoll,          Policy::kPytorch,
                                             Policy::kPytorchExpandable, Policy::kPytorchRoundup,
                                             Policy::kBestFit,           Policy::kBuddy};
constexpr std::array<std::string_view, 6> kNames = {
    "plimsoll", "pytorch", "pytorch-expandable", "pytorch-roundup", "best-fit", "buddy"};
constexpr int kRoundupDivisions = 8;

Bytes device_capacity(const ReplayOptions& options) {
  return options.capacity.value > 0 ? options.capacity : Bytes(std::int64_t{1} << 42);
}

memory::FakeDeviceOptions fake_options(const ReplayOptions& options) {
  memory::FakeDeviceOptions fake;
  fake.capacity = device_capacity(options);
  return fake;
}

constexpr std::uint32_t kNoBlock = ~std::uint32_t{0};

// CPU time of this thread: what else the machine does meanwhile does not count.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Refusals {
  std::int64_t count = 0;
  std::uint32_t first_block = kNoBlock;
  bool finished = true;
};

// Asks the clock once in 4,096 operations.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds)
      : end_(seconds > 0 ? thread_seconds() + seconds : std::numeric_limits<double>::infinity()) {}
  bool passed(std::size_t operation) const {
    return operation % 4096 == 0 && end_ < std::numeric_limits<double>::infinity() &&
           thread_seconds() > end_;
  }

 private:
  double end_;
};

// The event that allocates a block: every allocation of the trace makes one, in order, after the
// seeds.
std::int64_t event_of(const Trace& trace, const ReplayProgram& program, std::uint32_t block) {
  const std::size_t seeds = program.initial_addresses.size();
  if (block == kNoBlock || block < seeds) return -1;
  std::size_t left = block - seeds;
  for (std::size_t at = 0; at < trace.events.size(); ++at) {
    if (trace.events[at].kind != EventKind::kAllocation) continue;
    if (left-- == 0) return static_cast<std::int64_t>(at);
  }
  return -1;
}

// Runs the program on anything with allocate(bytes, stream) -> 0 on refusal, and free(name).
template <typename Allocate, typename Free>
Refusals run_program(const ReplayProgram& program, std::vector<std::uint64_t>& names,
                     std::size_t first, double most_seconds, Allocate allocate, Free free) {
  Refusals refused;
  const TimeLimit limit(most_seconds);
  for (std::size_t at = first; at < program.operations.size(); ++at) {
    if (limit.passed(at)) {
      refused.finished = false;
      break;
    }
    const ReplayOperation& operation = program.operations[at];
    std::uint64_t& name = names[operation.block];
    if (operation.kind == ReplayOperation::kAllocate) {
      name = allocate(Bytes(operation.bytes), operation.stream);
      if (name == 0 && refused.count++ == 0) refused.first_block = operation.block;
    } else if (operation.kind == ReplayOperation::kFree && name != 0) {
      free(name);
      name = 0;
    }
  }
  return refused;
}

Refusals run_ours_checked(const ReplayProgram& program, double most_seconds,
                          memory::CachingAllocator& allocator, memory::FakeDevice& device,
                          ReplayOutcome& outcome) {
  Refusals refused;
  const TimeLimit limit(most_seconds);
  OrderChecker checker(device);
  std::vector<memory::Address> addresses(program.blocks, 0);
  for (std::size_t at = 0; at < program.operations.size(); ++at) {
    if (limit.passed(at)) {
      refused.finished = false;
      break;
    }
    const ReplayOperation& operation = program.operations[at];
    memory::Address& address = addresses[operation.block];
    switch (operation.kind) {
      case ReplayOperation::kAllocate:
        address = allocator.allocate(Bytes(operation.bytes), operation.stream);
        if (address == 0) {
          if (refused.count++ == 0) {
            refused.first_block = operation.block;
            outcome.first_failure =
                allocator.out_of_memory_report(Bytes(operation.bytes), operation.stream);
          }
        } else {
          checker.allocated(address, Bytes(operation.bytes), operation.stream);
        }
        break;
      case ReplayOperation::kFree:
        if (address == 0) break;
        checker.freed(address);
        allocator.free(address);
        address = 0;
        break;
      case ReplayOperation::kWait:
        checker.waits(operation.stream, operation.peer);
        break;
      case ReplayOperation::kRecordStream:
        if (address == 0) break;
        allocator.record_stream(address, operation.peer);
        checker.used(address, operation.peer);
        break;
    }
  }
  outcome.order_violation = checker.violation();
  return refused;
}

double time_ours(const ReplayProgram& program, const ReplayOptions& options) {
  double seconds = 0;
  std::int64_t operations = 0;
  std::vector<std::uint64_t> names(program.blocks, 0);
  do {
    memory::FakeDevice device(fake_options(options));
    memory::CachingAllocator allocator(device, device);
    std::fill(names.begin(), names.end(), 0);
    const double start = thread_seconds();
    run_program(
        program, names, 0, 0,
        [&](Bytes bytes, StreamId stream) { return allocator.allocate(bytes, stream); },
        [&](std::uint64_t name) { allocator.free(name); });
    seconds += thread_seconds() - start;
    operations += static_cast<std::int64_t>(program.operations.size());
  } while (seconds < options.least_seconds);
  return operations == 0 ? 0 : seconds * 1e9 / static_cast<double>(operations);
}

Refusals replay_ours(const ReplayProgram& program, const ReplayOptions& options,
                     ReplayOutcome& outcome) {
  Refusals refused;
  memory::FakeDevice device(fake_options(options));
  {
    memory::CachingAllocator allocator(device, device);
    refused = run_ours_checked(program, options.most_seconds, allocator, device, outcome);
    const memory::AllocatorStatistics statistics = allocator.statistics();
    outcome.peak_reserved = Bytes(statistics.reserved_bytes.peak);
    outcome.device_allocations = statistics.device_allocations;
    outcome.pages_remapped = statistics.bytes_remapped.value >> memory::kPageBits;
    outcome.mappings = statistics.mappings;
    outcome.stream_waits = statistics.stream_waits;
  }
  if (options.timed) outcome.ns_per_operation = time_ours(program, options);
  return refused;
}

Refusals replay_pytorch(const Trace& trace, const ReplayProgram& program,
                        const PytorchPolicy& policy, double most_seconds, ReplayOutcome& outcome) {
  PytorchModel model(policy, trace);
  std::vector<std::uint64_t> names(program.blocks, 0);
  // A block that lies in none of the segments it should lie in takes memory all the same; one that
  // finds no room is refused like any other.
  Refusals before;
  for (std::size_t at = 0; at < program.seeds; ++at) {
    const ReplayOperation& seed = program.operations[at];
    if (seed.kind != ReplayOperation::kAllocate) continue;
    names[seed.block] = model.initial_block(program.initial_addresses[seed.block]);
    if (names[seed.block] == 0) names[seed.block] = model.allocate(Bytes(seed.bytes), seed.stream);
    if (names[seed.block] == 0 && before.count++ == 0) before.first_block = seed.block;
  }
  const double start = thread_seconds();
  Refusals refused = run_program(
      program, names, program.seeds, most_seconds,
      [&](Bytes bytes, StreamId stream) { return model.allocate(bytes, stream); },
      [&](std::uint64_t name) { model.free(name); });
  const auto count = static_cast<double>(program.operations.size() - program.seeds);
  outcome.ns_per_operation = count > 0 ? (thread_seconds() - start) * 1e9 / count : 0;
  outcome.peak_reserved = model.peak_reserved();
  outcome.device_allocations = model.device_allocations();
  refused.count += before.count;
  if (before.count > 0) refused.first_block = before.first_block;
  return refused;
}

// One growing range: what it reserves is the highest byte it ever gave out, in whole pages.
template <memory::OffsetAllocator Offsets>
Refusals replay_offsets(const ReplayProgram& program, Bytes capacity, double most_seconds,
                        ReplayOutcome& outcome) {
  Offsets offsets(capacity);
  std::vector<std::uint64_t> names(program.blocks, 0);
  const double start = thread_seconds();
  const Refusals refused = run_program(
      program, names, 0, most_seconds,
      [&](Bytes bytes, StreamId) -> std::uint64_t {
        const auto offset = offsets.allocate(bytes);
        return offset ? static_cast<std::uint64_t>(offset->value) + 1 : 0;
      },
      [&](std::uint64_t name) { offsets.free(Offset(static_cast<std::int64_t>(name) - 1)); });
  const auto count = static_cast<double>(program.operations.size());
  outcome.ns_per_operation = count > 0 ? (thread_seconds() - start) * 1e9 / count : 0;
  outcome.peak_reserved = Bytes(round_up(offsets.high_water().value, memory::kPage));
  outcome.device_allocations = outcome.peak_reserved.value >> memory::kPageBits;
  return refused;
}

Refusals run_policy(const Trace& trace, const ReplayProgram& program, Policy policy,
                    const ReplayOptions& options, ReplayOutcome& outcome) {
  const Bytes capacity = device_capacity(options);
  const double most = options.most_seconds;
  switch (policy) {
    case Policy::kPlimsoll:
      return replay_ours(program, options, outcome);
    case Policy::kPytorch:
      return replay_pytorch(trace, program, {false, 0, capacity}, most, outcome);
    case Policy::kPytorchExpandable:
      return replay_pytorch(trace, program, {true, 0, capacity}, most, outcome);
    case Policy::kPytorchRoundup:
      return replay_pytorch(trace, program, {false, kRoundupDivisions, capacity}, most, outcome);
    case Policy::kBestFit:
      return replay_offsets<memory::BestFitAllocator>(program, capacity, most, outcome);
    case Policy::kBuddy:
      return replay_offsets<memory::BuddyAllocator>(program, capacity, most, outcome);
  }
  return {};
}

}  // namespace

std::string_view to_string(Policy policy) {
  return kNames[static_cast<std::size_t>(policy)];
}
std::span<const Policy> all_policies() {
  return kPolicies;
}

Result<Policy> policy_from(std::string_view text) {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) {
    return fail(ErrorCode::kUsage,
                "allocator '{}': expected all, plimsoll, pytorch, pytorch-expandable, "
                "pytorch-roundup, best-fit or buddy",
                text);
  }
  return kPolicies[static_cast<std::size_t>(found - kNames.begin())];
}

ReplayOutcome replay(const Trace& trace, const ReplayProgram& program, Policy policy,
                     const ReplayOptions& options) {
  ReplayOutcome outcome;
  outcome.policy = policy;
  const Refusals refused = run_policy(trace, program, policy, options, outcome);
  outcome.finished = refused.finished;
  outcome.out_of_memory = refused.count;
  outcome.first_failed_event = event_of(trace, program, refused.first_block);
  if (program.peak_live.value > 0) {
    outcome.overhead = static_cast<double>(outcome.peak_reserved.value) /
                           static_cast<double>(program.peak_live.value) -
                       1;
  }
  return outcome;
}

}  // namespace plimsoll::trace
