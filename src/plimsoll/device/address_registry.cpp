#include "plimsoll/device/address_registry.h"

#include <algorithm>

#include "plimsoll/base/check.h"

namespace plimsoll::device {
namespace {

constexpr std::size_t kFirstRoom = 64;

std::atomic<AddressRegistry*> used_instead{nullptr};

}  // namespace

AddressRegistry::AddressRegistry() {
  tables_.push_back(std::make_unique<Table>(kFirstRoom));
  table_.store(tables_.back().get(), std::memory_order_release);
  names_.emplace_back("host");
}

DeviceNumber AddressRegistry::enroll(std::string name) {
  PLIMSOLL_CHECK(!name.empty(), "a device without a name");
  const std::scoped_lock lock(writers_);
  const auto free = std::find(names_.begin(), names_.end(), "");
  const auto number = static_cast<DeviceNumber>(free - names_.begin());
  if (free == names_.end()) {
    names_.push_back(std::move(name));
  } else {
    *free = std::move(name);
  }
  return number;
}

template <typename Which>
void AddressRegistry::erase(std::size_t first, std::size_t last, Which goes) {
  Table& table = *tables_.back();
  const std::size_t count = table.count;
  version_.fetch_add(1, std::memory_order_acq_rel);
  std::atomic_thread_fence(std::memory_order_release);
  std::size_t kept = first;
  for (std::size_t i = first; i < count; ++i) {
    if (i < last && goes(table.ranges[i])) continue;
    table.ranges[kept].begin = table.ranges[i].begin.load();
    table.ranges[kept].end = table.ranges[i].end.load();
    table.ranges[kept].device = table.ranges[i].device.load();
    ++kept;
  }
  table.count = kept;
  version_.fetch_add(1, std::memory_order_release);
}

void AddressRegistry::leave(DeviceNumber device) {
  const std::scoped_lock lock(writers_);
  erase(0, tables_.back()->count, [device](const Range& range) { return range.device == device; });
  names_[device].clear();
}

std::string AddressRegistry::name_of(DeviceNumber device) const {
  const std::scoped_lock lock(writers_);
  return device < names_.size() && !names_[device].empty() ? names_[device] : "a closed device";
}

std::size_t AddressRegistry::place_of(const Table& table, std::uint64_t begin) const {
  std::size_t place = 0;
  while (place < table.count && table.ranges[place].begin < begin) ++place;
  return place;
}

void AddressRegistry::grow() {
  const Table& old = *tables_.back();
  auto larger = std::make_unique<Table>(2 * old.ranges.size());
  for (std::size_t i = 0; i < old.count; ++i) {
    larger->ranges[i].begin = old.ranges[i].begin.load();
    larger->ranges[i].end = old.ranges[i].end.load();
    larger->ranges[i].device = old.ranges[i].device.load();
  }
  larger->count = old.count.load();
  tables_.push_back(std::move(larger));
  table_.store(tables_.back().get(), std::memory_order_release);
}

void AddressRegistry::add(const void* begin, std::size_t bytes, DeviceNumber device) {
  if (bytes == 0) return;
  const std::scoped_lock lock(writers_);
  PLIMSOLL_CHECK(device < names_.size() && !names_[device].empty(), "device {} is not enrolled",
                 device);
  if (tables_.back()->count == tables_.back()->ranges.size()) grow();
  Table& table = *tables_.back();
  const auto at = reinterpret_cast<std::uint64_t>(begin);
  const std::size_t place = place_of(table, at);
  const std::size_t count = table.count;
  PLIMSOLL_CHECK((place == 0 || table.ranges[place - 1].end <= at) &&
                     (place == count || at + bytes <= table.ranges[place].begin),
                 "{} bytes at {:#x} of {} are another's already", bytes, at, names_[device]);
  version_.fetch_add(1, std::memory_order_acq_rel);
  std::atomic_thread_fence(std::memory_order_release);
  for (std::size_t i = count; i > place; --i) {
    table.ranges[i].begin = table.ranges[i - 1].begin.load();
    table.ranges[i].end = table.ranges[i - 1].end.load();
    table.ranges[i].device = table.ranges[i - 1].device.load();
  }
  table.ranges[place].begin = at;
  table.ranges[place].end = at + bytes;
  table.ranges[place].device = device;
  table.count = count + 1;
  version_.fetch_add(1, std::memory_order_release);
}

void AddressRegistry::remove(const void* begin, std::size_t bytes) {
  const std::scoped_lock lock(writers_);
  const Table& table = *tables_.back();
  const auto at = reinterpret_cast<std::uint64_t>(begin);
  const std::size_t first = place_of(table, at);
  const std::size_t last = place_of(table, at + bytes);
  if (first < last) erase(first, last, [](const Range&) { return true; });
}

AddressRegistry& addresses() {
  static AddressRegistry own;
  AddressRegistry* const instead = used_instead.load(std::memory_order_acquire);
  return instead != nullptr ? *instead : own;
}

void use_addresses(AddressRegistry& registry) {
  used_instead.store(&registry, std::memory_order_release);
}

Error wrong_device(const std::string& what, const std::string& operand, DeviceNumber found,
                   const std::string& wanted) {
  return {ErrorCode::kDevice, fmt::format("{}: {} lies on {}, {} is wanted", what, operand,
                                          addresses().name_of(found), wanted)};
}

}  // namespace plimsoll::device
