#include "plimsoll/profile/measure_bus.h"

#include <algorithm>
#include <limits>

#include "plimsoll/base/clock.h"

namespace plimsoll::profile {

double BusRates::seconds(Bytes out, Bytes in) const {
  const auto bytes_out = static_cast<double>(out.value);
  const auto bytes_in = static_cast<double>(in.value);
  return std::max({bytes_out / out_bytes_per_second, bytes_in / in_bytes_per_second,
                   (bytes_out + bytes_in) / both_bytes_per_second});
}

Result<BusRates> measure_bus(device::Device& device, Bytes bytes) {
  const auto count = static_cast<std::size_t>(bytes.value);
  PLIMSOLL_TRY(const auto arena, device.make_arena(bytes * 2));
  PLIMSOLL_TRY(const auto host, device.make_host_arena(bytes * 2));
  PLIMSOLL_TRY(const auto out, device.make_copy_stream());
  PLIMSOLL_TRY(const auto in, device.make_copy_stream());
  PLIMSOLL_RETURN_IF_ERROR(out->fill(arena->data(), std::byte{1}, 2 * count));
  PLIMSOLL_RETURN_IF_ERROR(out->copy(host->data(), arena->data(), 2 * count));
  PLIMSOLL_RETURN_IF_ERROR(out->synchronize());
  const auto timed = [&](bool goes_out, bool comes_in) -> Result<double> {
    double best = std::numeric_limits<double>::max();
    for (int round = 0; round < 3; ++round) {
      const Stopwatch watch;
      if (goes_out) PLIMSOLL_RETURN_IF_ERROR(out->copy(host->data(), arena->data(), count));
      if (comes_in)
        PLIMSOLL_RETURN_IF_ERROR(in->copy(arena->data() + count, host->data() + count, count));
      PLIMSOLL_RETURN_IF_ERROR(out->synchronize());
      PLIMSOLL_RETURN_IF_ERROR(in->synchronize());
      best = std::min(best, watch.seconds());
    }
    return static_cast<double>(bytes.value) / std::max(best, 1e-9);
  };
  BusRates rates;
  PLIMSOLL_TRY(rates.out_bytes_per_second, timed(true, false));
  PLIMSOLL_TRY(rates.in_bytes_per_second, timed(false, true));
  PLIMSOLL_TRY(const double each, timed(true, true));
  rates.both_bytes_per_second = 2 * each;
  return rates;
}

}  // namespace plimsoll::profile
