#include "plimsoll/schedule/workload/cost_unit.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plimsoll::schedule {
namespace {

constexpr int kUsual = 30;  // costs of 2^-30 to 2^30 stay as they are
// of copies; finite, so that no bytes take 0 seconds and not NaN
constexpr double kMostRate = 1e300;

}  // namespace

double take_out_unit(Workload& workload, CopyRates& copies) {
  double most = 0;
  for (const Task& task : workload.tasks) most = std::max(most, task.seconds);
  if (most == 0) return 1;
  const int exponent = std::ilogb(most) + std::bit_width(workload.tasks.size());
  if (std::abs(exponent) <= kUsual) return 1;
  const auto scale = [&](double& cost) { cost = std::ldexp(cost, -exponent); };
  for (Task& task : workload.tasks) scale(task.seconds);
  for (Value& value : workload.values) {
    for (Encoding& offer : value.encodings) {
      scale(offer.encode_seconds);
      scale(offer.decode_seconds);
    }
  }
  scale(copies.latency_seconds);
  for (double* rate : {&copies.out_bytes_per_second, &copies.in_bytes_per_second})
    *rate = std::min(kMostRate, std::ldexp(*rate, exponent));
  return std::ldexp(1.0, exponent);
}

}  // namespace plimsoll::schedule
