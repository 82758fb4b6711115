#include "plimsoll/device/address_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "plimsoll/base/random.h"
#include "plimsoll/device/cpu/cpu_device.h"
#include "plimsoll/device/fake/fake_device.h"

namespace plimsoll::device {
namespace {

using testing::HasSubstr;

const void* at(std::uint64_t address) {
  return reinterpret_cast<const void*>(address);
}

TEST(AddressRegistry, KnowsWhoseAnAddressIs) {
  AddressRegistry table;
  const DeviceNumber a = table.enroll("a"), b = table.enroll("b");
  table.add(at(1000), 100, b);
  table.add(at(100), 100, a);
  table.add(at(200), 50, b);
  EXPECT_EQ(table.device_of(at(99)), kHost);
  EXPECT_EQ(table.device_of(at(100)), a);
  EXPECT_EQ(table.device_of(at(199)), a);
  EXPECT_EQ(table.device_of(at(200)), b);
  EXPECT_EQ(table.device_of(at(250)), kHost);
  EXPECT_EQ(table.device_of(at(1099)), b);
  EXPECT_EQ(table.device_of(at(1100)), kHost);
  table.remove(at(200));
  EXPECT_EQ(table.device_of(at(200)), kHost);
  EXPECT_EQ(table.device_of(at(1000)), b);
  EXPECT_EQ(table.name_of(a), "a");
  EXPECT_EQ(table.name_of(kHost), "host");
}

TEST(AddressRegistry, GivesTheNumberOfADeviceThatLeftToAnother) {
  AddressRegistry table;
  const DeviceNumber a = table.enroll("a");
  table.leave(a);
  EXPECT_EQ(table.enroll("b"), a);
  EXPECT_EQ(table.name_of(a), "b");
}

// Against a map, through many changes, more than the first table holds.
TEST(AddressRegistry, AgreesWithAMap) {
  constexpr std::uint64_t kSeed = 7;
  RecordProperty("seed", std::to_string(kSeed));
  Random random(kSeed);
  AddressRegistry table;
  const DeviceNumber devices[] = {table.enroll("a"), table.enroll("b"), table.enroll("c")};
  std::map<std::uint64_t, std::pair<std::uint64_t, DeviceNumber>> known;  // begin: end, device
  for (int turn = 0; turn < 3000; ++turn) {
    const std::uint64_t slot = 1000 * static_cast<std::uint64_t>(random.between(1, 400));
    if (const auto found = known.find(slot); found != known.end()) {
      if (random.chance(0.4)) {
        table.remove(at(slot));
        known.erase(found);
      }
    } else {
      const auto bytes = static_cast<std::uint64_t>(random.between(1, 1000));
      const DeviceNumber device = devices[random.below(3)];
      table.add(at(slot), bytes, device);
      known[slot] = {slot + bytes, device};
    }
    const auto probe = static_cast<std::uint64_t>(random.between(0, 402000));
    auto after = known.upper_bound(probe);
    DeviceNumber wanted = kHost;
    if (after != known.begin() && probe < std::prev(after)->second.first)
      wanted = std::prev(after)->second.second;
    ASSERT_EQ(table.device_of(at(probe)), wanted) << probe << ", seed " << kSeed;
  }
  EXPECT_GT(known.size(), 64U);
}

TEST(AddressRegistry, IsReadWhileItChanges) {
  AddressRegistry table;
  const DeviceNumber steady = table.enroll("steady"), coming = table.enroll("coming");
  table.add(at(5000), 1000, steady);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!over.load()) {
      wrong += table.device_of(at(5500)) != steady;
      const DeviceNumber seen = table.device_of(at(100));
      wrong += seen != kHost && seen != coming;
    }
  });
  for (int turn = 0; turn < 2000; ++turn) {
    for (std::uint64_t i = 0; i < 4; ++i) table.add(at(100 + 1000 * i), 50, coming);
    for (std::uint64_t i = 0; i < 4; ++i) table.remove(at(100 + 1000 * i));
  }
  over = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Devices, NameWhatLiesOnAnother) {
  const auto mine = make_fake_device({}), other = make_fake_device({});
  const auto a = mine->make_arena(Bytes(4096)), b = other->make_arena(Bytes(4096));
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_EQ(addresses().device_of((*a)->data()), mine->number());
  EXPECT_EQ(addresses().device_of((*b)->data() + 4095), other->number());
  EXPECT_NE(mine->number(), other->number());

  const auto stream = *mine->make_stream();
  const Status copied = stream->copy((*a)->data(), (*b)->data(), 64);
  ASSERT_FALSE(copied.has_value());
  EXPECT_EQ(copied.error().code, ErrorCode::kDevice);
  EXPECT_THAT(copied.error().message,
              HasSubstr("its source lies on " + addresses().name_of(other->number())));
  EXPECT_FALSE(stream->fill((*b)->data(), std::byte{0}, 64).has_value());
  EXPECT_TRUE(stream->fill((*a)->data(), std::byte{0}, 64).has_value());
  EXPECT_TRUE(stream->synchronize().has_value());

  std::vector<std::byte> host(64);
  EXPECT_FALSE(mine->write((*b)->data(), host).has_value());
  EXPECT_FALSE(mine->read(host, (*b)->data()).has_value());
  EXPECT_TRUE(mine->write((*a)->data(), host).has_value());

  std::vector<Command> commands(1);
  commands[0].kind = Command::Kind::kCopy;
  commands[0].to = (*a)->data();
  commands[0].from = (*b)->data();
  commands[0].bytes = 64;
  commands[0].tensor = "h.0.weight";
  const auto sequence = mine->make_sequence(commands);
  ASSERT_FALSE(sequence.has_value());
  EXPECT_THAT(sequence.error().message, HasSubstr("'h.0.weight'"));
}

TEST(Devices, OfTheHostRefuseMemoryOfOthers) {
  const auto cpu = make_cpu_device();
  const auto fake = make_fake_device({});
  const auto arena = *fake->make_arena(Bytes(4096));
  std::vector<std::byte> host(64);
  const auto stream = *cpu->make_stream();
  EXPECT_FALSE(stream->copy(host.data(), arena->data(), 64).has_value());
  EXPECT_FALSE(cpu->read(host, arena->data()).has_value());
  EXPECT_TRUE(stream->copy(host.data(), host.data() + 32, 32).has_value());
}

TEST(Devices, ForgetWhatTheyGaveBack) {
  const auto fake = make_fake_device({});
  auto arena = *fake->make_arena(Bytes(4096));
  const std::byte* const data = arena->data();
  EXPECT_EQ(addresses().device_of(data), fake->number());
  arena.reset();
  EXPECT_EQ(addresses().device_of(data), kHost);
  const auto stream = *fake->make_stream();
  const auto pool = *fake->make_pool(*stream);
  std::byte* const block = pool->allocate(Bytes(100));
  EXPECT_EQ(addresses().device_of(block), fake->number());
  pool->free(block);
  EXPECT_EQ(addresses().device_of(block), kHost);
}

}  // namespace
}  // namespace plimsoll::device
