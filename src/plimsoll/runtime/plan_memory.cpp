#include "plimsoll/runtime/plan_memory.h"

#include <cstring>

namespace plimsoll::runtime {
namespace {

constexpr std::uint8_t kHostArena = 1;

}  // namespace

Status PlanMemory::take(const ExecutorOptions& options) {
  arenas_ = std::make_shared<Arenas>();
  for (std::size_t arena = 0; arena < plan_.arenas.size(); ++arena) {
    const Bytes bytes = plan_.arenas[arena].bytes + (arena == 0 ? options.space_behind : Bytes(0));
    if (arena == kHostArena && !options.swap_file.empty()) {
      PLIMSOLL_TRY(file_, device::SwapFile::make(options.swap_file, bytes));
      arenas_->memory.emplace_back();
      swaps_to_file_ = true;
      continue;
    }
    PLIMSOLL_TRY(device::CpuArena memory, device::CpuArena::make(bytes));
    arenas_->memory.push_back(std::move(memory));
  }
  return {};
}

std::span<const std::byte> PlanMemory::device() const {
  return arenas_->memory.empty() ? std::span<const std::byte>{} : arenas_->memory.front().bytes();
}

bool PlanMemory::on_device(const std::byte* address) const {
  const std::span<const std::byte> memory = device();
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

Status PlanMemory::lend(const Spot& spot, std::size_t bytes, std::span<std::byte>& out) {
  if (spot.address != nullptr) {
    out = {spot.address, bytes};
    return {};
  }
  lent_.resize(bytes);
  lent_from_ = spot.in_file;
  out = lent_;
  return file_.read(lent_from_, lent_);
}

Status PlanMemory::put_back() {
  if (lent_.empty()) return {};
  Status status = file_.write(lent_from_, lent_);
  lent_.clear();
  return status;
}

Status PlanMemory::copy(const Spot& from, const Spot& to, std::size_t bytes) {
  if (to.address == nullptr) return file_.write(to.in_file, {from.address, bytes});
  if (from.address == nullptr) return file_.read(from.in_file, {to.address, bytes});
  std::memcpy(to.address, from.address, bytes);
  return {};
}

}  // namespace plimsoll::runtime
