#include "plimsoll/runtime/plan_memory.h"

#include <algorithm>
#include <cstring>

namespace plimsoll::runtime {

Status PlanMemory::take(const ExecutorOptions& options) {
  arenas_ = std::make_shared<Arenas>();
  for (std::size_t arena = 0; arena < plan_.arenas.size(); ++arena) {
    const Bytes bytes = plan_.arenas[arena].bytes + (arena == 0 ? options.space_behind : Bytes(0));
    std::unique_ptr<device::Arena> memory;
    if (arena > 0 && bytes.value == 0) {
      arenas_->memory.push_back(nullptr);
      continue;
    }
    if (arena == kHostArena && !options.swap_file.empty()) {
      PLIMSOLL_TRY(file_, device::SwapFile::make(options.swap_file, bytes));
      swaps_to_file_ = true;
      if (!device_.computes_on_host()) PLIMSOLL_RETURN_IF_ERROR(stage());
    } else if (arena == kHostArena) {
      PLIMSOLL_TRY(memory, device_.make_host_arena(bytes));
    } else {
      PLIMSOLL_TRY(memory, device_.make_arena(bytes));
    }
    arenas_->memory.push_back(std::move(memory));
  }
  return {};
}

Status PlanMemory::stage() {
  Bytes out;
  Bytes in;
  for (const plan::PlanStep& step : plan_.steps) {
    if (step.kind != plan::StepKind::kCopyOut && step.kind != plan::StepKind::kCopyIn) continue;
    Bytes& largest = step.kind == plan::StepKind::kCopyOut ? out : in;
    largest = std::max(largest, ir::bytes_of(plan_.graph.value(step.value).type));
  }
  PLIMSOLL_TRY(staged_out_, device_.make_host_arena(out));
  PLIMSOLL_TRY(staged_in_, device_.make_host_arena(in));
  return {};
}

std::byte* PlanMemory::arena(std::size_t index) const {
  const auto& memory = arenas_->memory[index];
  return memory ? memory->data() : nullptr;
}

std::span<const std::byte> PlanMemory::device_bytes() const {
  return arenas_->memory.empty() ? std::span<const std::byte>{} : arenas_->memory.front()->bytes();
}

bool PlanMemory::on_device(const std::byte* address) const {
  const std::span<const std::byte> memory = device_bytes();
  return address != nullptr && address >= memory.data() && address < memory.data() + memory.size();
}

std::byte* PlanMemory::address(const plan::Slot& slot) const {
  return arena(plan_.buffer(slot.buffer).arena) + plan::place_of(plan_, slot).value;
}

bool PlanMemory::in_file(const plan::Slot& slot) const {
  return swaps_to_file_ && plan_.buffer(slot.buffer).arena == kHostArena;
}

Spot PlanMemory::spot(const plan::Slot& slot) const {
  if (in_file(slot)) return {nullptr, plan::place_of(plan_, slot)};
  return {address(slot), Offset(0)};
}

Status PlanMemory::write(const Spot& to, std::size_t bytes, const WriteBytes& content) {
  if (to.address != nullptr) return staging_.write(to.address, bytes, content);
  copied_.resize(bytes);
  PLIMSOLL_RETURN_IF_ERROR(content(copied_));
  return file_.write(to.in_file, copied_);
}

Status PlanMemory::read(const Spot& from, std::size_t bytes, const ReadBytes& use) {
  if (from.address != nullptr) return staging_.read(from.address, bytes, use);
  copied_.resize(bytes);
  PLIMSOLL_RETURN_IF_ERROR(file_.read(from.in_file, copied_));
  return use(copied_);
}

Status PlanMemory::copy(const Spot& from, const Spot& to, std::size_t bytes) {
  if (to.address == nullptr) return file_.write(to.in_file, {from.address, bytes});
  if (from.address == nullptr) return file_.read(from.in_file, {to.address, bytes});
  std::memcpy(to.address, from.address, bytes);
  return {};
}

}  // namespace plimsoll::runtime
