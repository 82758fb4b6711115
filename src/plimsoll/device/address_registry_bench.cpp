// What a check of one address costs: `device_bench --benchmark_filter=Address`.
#include "plimsoll/device/address_registry.h"

#include <benchmark/benchmark.h>

#include "plimsoll/device/device.h"

namespace plimsoll::device {
namespace {

// As a launch does it, with so many ranges entered and addresses that differ from call to call.
void BM_AddressChecked(benchmark::State& state) {
  static AddressRegistry table;
  use_addresses(table);
  const DeviceNumber device = addresses().enroll("bench");
  const auto ranges = static_cast<std::uint64_t>(state.range(0));
  constexpr std::uint64_t kRange = 64 << 20;
  const auto address = [](std::uint64_t i) {
    return reinterpret_cast<const void*>((i + 1) * 2 * kRange + 12345);
  };
  for (std::uint64_t i = 0; i < ranges; ++i)
    addresses().add(reinterpret_cast<const void*>((i + 1) * 2 * kRange), kRange, device);
  std::uint64_t i = 0;
  for (auto _ : state) {
    const Status status = check_operand(
        device, address(i), [] { return std::string("kernel"); },
        [] { return std::string("input"); });
    benchmark::DoNotOptimize(status.has_value());
    i = (i * 5 + 1) & (ranges - 1);
  }
  for (std::uint64_t r = 0; r < ranges; ++r)
    addresses().remove(reinterpret_cast<const void*>((r + 1) * 2 * kRange));
  addresses().leave(device);
}
BENCHMARK(BM_AddressChecked)->Arg(1)->Arg(4)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace plimsoll::device
