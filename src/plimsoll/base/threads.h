// How many threads "as many as there are cores" is.
#pragma once

#include <algorithm>
#include <thread>

namespace plimsoll {

// 0 becomes the number of cores.
inline int resolve_threads(int threads) {
  return threads > 0 ? threads
                     : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace plimsoll
