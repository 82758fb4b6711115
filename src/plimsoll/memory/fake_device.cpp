#include "plimsoll/memory/fake_device.h"

#include <algorithm>

#include "plimsoll/base/check.h"
#include "plimsoll/base/checked.h"

namespace plimsoll::memory {
namespace {

constexpr int kHandleBits = 40;
constexpr int kPhysicalPageBits = 21;
constexpr int kTableBits = 30;
constexpr Address kPageMask = (Address{1} << kPhysicalPageBits) - 1;

std::size_t page_of(Address address) {
  return address >> kPhysicalPageBits & 511;
}

void join(VectorClock& into, const VectorClock& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

}  // namespace

std::optional<Address> FakeDevice::reserve(Bytes size) {
  if (refused()) return std::nullopt;
  const Address at = next_address_;
  next_address_ += static_cast<Address>(round_up(size.value, 2 << 20));
  PLIMSOLL_CHECK(next_address_ < Address{1} << 47, "fake device: addresses used up");
  return at;
}

void FakeDevice::unreserve(Address address, Bytes size) {
  const Address last = (address + static_cast<Address>(size.value) - 1) >> kTableBits;
  for (const auto& [place, table] : tables_) {
    PLIMSOLL_CHECK(place < address >> kTableBits || place > last || table->mapped == 0,
                   "fake device: addresses given back while something is mapped there");
  }
}

FakeDevice::PageTable& FakeDevice::table_of(Address address) {
  if (address >> kTableBits != last_place_) {
    std::unique_ptr<PageTable>& table = tables_[address >> kTableBits];
    if (table == nullptr) table = std::make_unique<PageTable>();
    last_place_ = address >> kTableBits;
    last_table_ = table.get();
  }
  return *last_table_;
}

void FakeDevice::set_pages(Address address, std::uint64_t handle, Bytes size) {
  const auto pages = static_cast<std::uint32_t>(size.value >> kPhysicalPageBits);
  for (std::uint32_t index = 0; index < pages; ++index, address += kPageMask + 1) {
    PageTable& table = table_of(address);
    Page& page = table.pages[page_of(address)];
    PLIMSOLL_CHECK(page.handle == 0, "fake device: mapped over a mapping");
    page = {static_cast<std::uint32_t>(handle), index};
    ++table.mapped;
  }
}

std::optional<PhysicalHandle> FakeDevice::create(Bytes size) {
  if (refused() || counts_.held + size > options_.capacity) return std::nullopt;
  PLIMSOLL_CHECK(size.value > 0 && size.value % granularity().value == 0);
  ++counts_.created;
  counts_.held += size;
  handles_.push_back({size.value, 0, false, {}});
  return PhysicalHandle{handles_.size() - 1};
}

std::string FakeDevice::host_refusal() {
  return options_.host_slabs ? "" : SlabProvider::host_refusal();
}

std::optional<PhysicalHandle> FakeDevice::create_on_host(Bytes size) {
  PLIMSOLL_CHECK(options_.host_slabs, "fake device: host memory was asked of a device without it");
  if (refused()) return std::nullopt;
  counts_.held_on_host += size;
  handles_.push_back({size.value, 0, true, {}});
  return PhysicalHandle{handles_.size() - 1};
}

bool FakeDevice::copy(Address to, Address from, Bytes size) {
  if (refused()) return false;
  for (std::int64_t done = 0; done < size.value;) {
    const Handle& source = handles_[physical(from + static_cast<Address>(done)) >> kHandleBits];
    Handle& target = handles_[physical(to + static_cast<Address>(done)) >> kHandleBits];
    PLIMSOLL_CHECK(source.size == target.size && source.size <= size.value - done,
                   "fake device: a handle is copied whole or not at all");
    target.words = source.words;
    done += source.size;
  }
  return true;
}

bool FakeDevice::synchronize() {
  if (refused()) return false;
  settle();
  for (const auto& [stream, seen] : clocks_) host_sees(seen);
  return true;
}

void FakeDevice::write(Address address, std::uint64_t word) {
  const std::uint64_t at = physical(address);
  handles_[at >> kHandleBits].words[at & ((std::uint64_t{1} << kHandleBits) - 1)] = word;
}

std::uint64_t FakeDevice::read(Address address) const {
  const std::uint64_t at = physical(address);
  const auto& words = handles_[at >> kHandleBits].words;
  const auto found = words.find(at & ((std::uint64_t{1} << kHandleBits) - 1));
  return found == words.end() ? 0 : found->second;
}

bool FakeDevice::on_host(Address address) const {
  return handles_[physical(address) >> kHandleBits].on_host;
}

void FakeDevice::release(PhysicalHandle handle, Bytes size) {
  Handle& released = handles_.at(handle.value);
  PLIMSOLL_CHECK(released.size == size.value, "fake device: released an unknown handle");
  PLIMSOLL_CHECK(released.mappings == 0, "fake device: released a handle that is mapped");
  released.size = 0;
  released.words.clear();
  if (released.on_host) {
    counts_.held_on_host -= size;
    return;
  }
  ++counts_.released;
  counts_.held -= size;
}

bool FakeDevice::map(Address address, PhysicalHandle handle, Bytes size) {
  if (refused()) return false;
  Handle& mapped = handles_.at(handle.value);
  PLIMSOLL_CHECK(mapped.size == size.value, "fake device: a handle is mapped whole or not at all");
  set_pages(address, handle.value, size);
  ++mapped.mappings;
  ++counts_.mapped;
  return true;
}

void FakeDevice::unmap(Address address, Bytes size) {
  const std::uint32_t handle = table_of(address).pages[page_of(address)].handle;
  PLIMSOLL_CHECK(handle != 0 && handles_[handle].size == size.value,
                 "fake device: unmapped what is not mapped");
  const auto pages = static_cast<std::uint32_t>(size.value >> kPhysicalPageBits);
  for (std::uint32_t index = 0; index < pages; ++index, address += kPageMask + 1) {
    PageTable& table = table_of(address);
    Page& page = table.pages[page_of(address)];
    PLIMSOLL_CHECK(page.handle == handle && page.index == index,
                   "fake device: unmapped a part of a mapping");
    page = {};
    --table.mapped;
  }
  --handles_[handle].mappings;
  ++counts_.unmapped;
}

std::optional<Address> FakeDevice::allocate_slab(Bytes size) {
  const auto handle = create(size);
  if (!handle) return std::nullopt;
  const Address at = next_address_;
  next_address_ += static_cast<Address>(size.value) + (2 << 20);
  ++handles_[handle->value].mappings;
  set_pages(at, handle->value, size);
  return at;
}

void FakeDevice::free_slab(Address address, Bytes size) {
  const PhysicalHandle handle{table_of(address).pages[page_of(address)].handle};
  unmap(address, size);
  release(handle, size);
}

VectorClock& FakeDevice::clock(StreamId stream) {
  VectorClock& own = clocks_[stream.value];
  join(own, host_);
  return own;
}

void FakeDevice::host_sees(const VectorClock& seen) {
  join(host_, seen);
}

bool FakeDevice::can_mark(StreamId stream) {
  const auto found = capturing_.find(stream.value);
  return found == capturing_.end() || !found->second;
}

OrderMark FakeDevice::record(StreamId stream) {
  PLIMSOLL_CHECK(can_mark(stream), "fake device: marked a stream that is being captured");
  ++counts_.marks;
  marks_[next_mark_] = {clock(stream), next_mark_, stream.value, asked_[stream.value]};
  return {next_mark_++};
}

bool FakeDevice::reached(OrderMark mark) {
  ++counts_.asked;
  const Mark& asked = marks_.at(mark.value);
  const std::int64_t questions = ++asked_[asked.stream] - asked.asked;
  if (asked.number >= settled_ && questions < options_.patience) return false;
  host_sees(asked.clock);
  return true;
}

void FakeDevice::wait(StreamId stream, OrderMark mark) {
  ++counts_.waits;
  join(clock(stream), marks_.at(mark.value).clock);
}

void FakeDevice::synchronize(OrderMark mark) {
  ++counts_.synchronized;
  host_sees(marks_.at(mark.value).clock);
}

void FakeDevice::forget(OrderMark mark) {
  PLIMSOLL_CHECK(marks_.erase(mark.value) == 1, "fake device: forgot a mark twice");
  --counts_.marks;
}

FakeDevice::Stamp FakeDevice::work_on(StreamId stream) {
  return {stream.value, ++clock(stream)[stream.value]};
}

bool FakeDevice::is_behind(StreamId later, const Stamp& stamp) {
  if (later.value == stamp.stream) return true;
  return clock(later)[stamp.stream] >= stamp.count;
}

std::uint64_t FakeDevice::physical(Address address) const {
  const auto table = tables_.find(address >> kTableBits);
  PLIMSOLL_CHECK(table != tables_.end(), "fake device: address is not mapped");
  const Page& page = table->second->pages[page_of(address)];
  PLIMSOLL_CHECK(page.handle != 0, "fake device: address is not mapped");
  const Address offset = (Address{page.index} << kPhysicalPageBits) + (address & kPageMask);
  return (std::uint64_t{page.handle} << kHandleBits) + offset;
}

}  // namespace plimsoll::memory
