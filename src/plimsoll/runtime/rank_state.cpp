#include "plimsoll/runtime/rank_state.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/collective/shard.h"

namespace plimsoll::runtime {
namespace {

struct StateRun {
  ir::DType dtype;
  std::byte* begin;
  std::byte* end;
};

// Tensors with nothing but padding between them are one run.
std::vector<StateRun> runs_of_state(const Executor& executor) {
  const ir::Graph& graph = executor.graph();
  std::vector<bool> own(graph.values.size(), false);  // every rank has its own part
  for (const ops::ShardedState& part : ops::sharded_state(graph)) own[part.value.index()] = true;
  std::vector<StateRun> all;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!ir::is_persistent(graph.values[v].kind) || own[v]) continue;
    const std::span<std::byte> memory = executor.memory_of(ValueId(v));
    if (!memory.empty())
      all.push_back({graph.values[v].type.dtype, memory.data(), memory.data() + memory.size()});
  }
  const std::int64_t alignment = executor.backend().device().alignment().value;
  const bool planned = !executor.arenas().empty();
  // Every rank must send in the same order. Without a plan addresses differ from rank to rank, and
  // the order is the graph's.
  if (planned)
    std::sort(all.begin(), all.end(),
              [](const StateRun& a, const StateRun& b) { return a.begin < b.begin; });
  std::vector<StateRun> out;
  for (const StateRun& run : all) {
    const bool joins =
        planned && !out.empty() && out.back().dtype == run.dtype &&
        run.begin == out.back().begin + round_up(out.back().end - out.back().begin, alignment);
    if (joins) {
      out.back().end = run.end;
    } else {
      out.push_back(run);
    }
  }
  return out;
}

Status part_counters(Executor& executor, int rank) {
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind != ir::ValueKind::kState || value.type.dtype != ir::DType::kU64 ||
        value.type.shape.rank() != 0)
      continue;
    PLIMSOLL_TRY(std::vector<std::byte> bytes, executor.read(ValueId(v)));
    std::uint64_t counter = 0;
    std::memcpy(&counter, bytes.data(), sizeof counter);
    counter += static_cast<std::uint64_t>(rank) << 40;
    std::memcpy(bytes.data(), &counter, sizeof counter);
    PLIMSOLL_RETURN_IF_ERROR(executor.write(ValueId(v), bytes));
  }
  return {};
}

}  // namespace

Status share_state(Executor& executor, dist::Communicator& communicator) {
  const device::DeviceNumber device = executor.backend().device().number();
  for (const StateRun& run : runs_of_state(executor)) {
    PLIMSOLL_RETURN_IF_ERROR(device::check_operand(
        device, run.begin, [] { return std::string("broadcast of the state"); },
        [&] { return fmt::format("a run of {}", ir::name(run.dtype)); }));
    communicator.broadcast(run.begin, Bytes(run.end - run.begin), 0);
  }
  return part_counters(executor, communicator.rank());
}

}  // namespace plimsoll::runtime
