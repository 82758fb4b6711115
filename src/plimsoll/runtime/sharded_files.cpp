#include "plimsoll/runtime/sharded_files.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace plimsoll::runtime {
namespace {

using ops::ShardedState;

std::int64_t element_of(const Executor& executor, const ShardedState& state) {
  return ir::bits(executor.graph().value(state.value).type.dtype) / 8;
}

bool is_piece(const ShardedState::Member& member) {
  return member.count < member.shape.elements();
}

// Pieces of a tensor stand together, in order; everything else stands where it stood.
std::vector<ShardedState> by_tensor(const std::vector<ShardedState>& states) {
  std::vector<ShardedState> out;
  std::vector<bool> taken(states.size(), false);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (taken[i] || states[i].members.empty()) continue;
    const auto first = out.size();
    for (std::size_t j = i; j < states.size(); ++j) {
      const bool same = j == i || (!states[j].members.empty() && is_piece(states[j].members[0]) &&
                                   states[j].members[0].name == states[i].members[0].name);
      if (!same) continue;
      taken[j] = true;
      out.push_back(states[j]);
    }
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
              [](const ShardedState& a, const ShardedState& b) {
                return a.members[0].begin < b.members[0].begin;
              });
  }
  return out;
}

// The parts of all ranks, one behind the other.
Result<std::vector<std::byte>> gathered(Executor& executor, const ShardedState& state,
                                        dist::Communicator& ranks) {
  const std::int64_t part = state.part * element_of(executor, state);
  std::vector<std::byte> whole(static_cast<std::size_t>(part * state.ranks));
  PLIMSOLL_RETURN_IF_ERROR(
      executor.read(state.value, [&](std::span<const std::byte> memory) -> Status {
        std::memcpy(whole.data() + part * ranks.rank(), memory.data(), memory.size());
        return {};
      }));
  std::vector<std::int64_t> begins;
  for (std::int64_t r = 0; r <= state.ranks; ++r) begins.push_back(r * part);
  ranks.host().gather_run(whole.data(), begins);
  return whole;
}

}  // namespace

Status save_parts(Executor& executor, const std::vector<ShardedState>& states,
                  dist::Communicator& ranks, store::NpzWriter* out) {
  std::vector<std::byte> tensor;  // as far as its pieces have come
  for (const ShardedState& state : by_tensor(states)) {
    PLIMSOLL_TRY(const std::vector<std::byte> run, gathered(executor, state, ranks));
    if (out == nullptr) continue;
    const std::int64_t element = element_of(executor, state);
    const ir::DType dtype = executor.graph().value(state.value).type.dtype;
    for (const ShardedState::Member& member : state.members) {
      const std::span<const std::byte> bytes =
          std::span(run).subspan(static_cast<std::size_t>(member.first * element),
                                 static_cast<std::size_t>(member.count * element));
      const ir::TensorType type{dtype, member.shape, {}};
      if (!is_piece(member)) {
        PLIMSOLL_RETURN_IF_ERROR(out->add(member.name, type, bytes));
        continue;
      }
      if (std::ssize(tensor) != member.begin * element)
        return bad_input("'{}': a piece of it begins at element {}, and {} bytes stand before it",
                         member.name, member.begin, tensor.size());
      if (tensor.empty())
        tensor.reserve(static_cast<std::size_t>(member.shape.elements() * element));
      tensor.insert(tensor.end(), bytes.begin(), bytes.end());
      if (member.begin + member.count < member.shape.elements()) continue;
      PLIMSOLL_RETURN_IF_ERROR(out->add(member.name, type, tensor));
      tensor.clear();
    }
  }
  return {};
}

Status read_parts(Executor& executor, const std::vector<ShardedState>& states, int rank,
                  const store::NpzFile& file) {
  std::optional<store::NamedTensor> tensor;  // the last one read: a piece of it may come next
  const store::NpzEntry* read = nullptr;
  for (const ShardedState& state : by_tensor(states)) {
    const std::int64_t element = element_of(executor, state);
    const ir::Value& value = executor.graph().value(state.value);
    const std::int64_t begin = state.part * rank;
    const auto copy_members = [&](std::span<std::byte> memory) -> Status {
      std::fill(memory.begin(), memory.end(), std::byte{0});
      for (const ShardedState::Member& member : state.members) {
        const store::NpzEntry* const entry = file.find(member.name);
        if (entry == nullptr)
          return bad_input("{} '{}' is not in the checkpoint", ir::name(value.kind), member.name);
        const ir::TensorType type{value.type.dtype, member.shape, {}};
        if (entry->type != type)
          return bad_input("{} '{}': the checkpoint has {}, the model expects {}",
                           ir::name(value.kind), member.name, ir::to_string(entry->type),
                           ir::to_string(type));
        const std::int64_t from = std::max(begin, member.first);
        const std::int64_t to = std::min(begin + state.part, member.first + member.count);
        if (from >= to) continue;
        if (entry != read) {
          tensor.reset();
          PLIMSOLL_TRY(tensor, file.read(*entry));
          read = entry;
        }
        std::memcpy(memory.data() + (from - begin) * element,
                    tensor->bytes.data() + (member.begin + from - member.first) * element,
                    static_cast<std::size_t>((to - from) * element));
      }
      return {};
    };
    PLIMSOLL_RETURN_IF_ERROR(executor.write(state.value, copy_members));
  }
  return {};
}

}  // namespace plimsoll::runtime
