#include "plimsoll/runtime/paging/uvm_model.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

namespace plimsoll::runtime {

UvmModelResult model_managed_memory(std::span<const VirtualLaunch> launches,
                                    const UvmModelOptions& options) {
  UvmModelResult out;
  const std::int64_t frames =
      std::max<std::int64_t>(options.capacity.value / options.page.value, 1);
  std::deque<std::int64_t> in_order_of_arrival;
  std::unordered_set<std::int64_t> there;
  for (int step = 0; step < 2; ++step) {
    const bool counts = step == 1;
    for (const VirtualLaunch& launch : launches) {
      for (const Interval<std::int64_t>& range : launch) {
        for (std::int64_t page = range.begin / options.page.value;
             page * options.page.value < range.end; ++page) {
          if (!there.insert(page).second) continue;
          if (static_cast<std::int64_t>(there.size()) > frames) {
            there.erase(in_order_of_arrival.front());
            in_order_of_arrival.pop_front();
            if (counts) out.out += options.page;
          }
          in_order_of_arrival.push_back(page);
          if (!counts) continue;
          ++out.faults;
          out.in += options.page;
        }
      }
    }
  }
  out.seconds = options.compute_seconds + static_cast<double>(out.faults) * options.fault_seconds +
                static_cast<double>(out.in.value) / options.in_bytes_per_second +
                static_cast<double>(out.out.value) / options.out_bytes_per_second;
  return out;
}

}  // namespace plimsoll::runtime
