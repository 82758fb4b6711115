// The pool behind the on-demand executor: taken from the system once, then recycled.
#include <cstdio>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/memory/host_pool.h"

using namespace plimsoll;

int main() {
  memory::HostPool pool;
  void* first = pool.allocate(5_MiB);
  pool.free(first);
  void* second = pool.allocate(5_MiB);
  pool.free(second);
  const memory::HostPoolStatistics statistics = pool.statistics();
  std::printf("%lld allocations, %lld recycled, peak %s, held %s\n",
              static_cast<long long>(statistics.allocations),
              static_cast<long long>(statistics.recycled), human(statistics.peak_in_use).c_str(),
              human(statistics.held).c_str());
  return first == second ? 0 : 1;
}
