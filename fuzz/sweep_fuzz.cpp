// Any bytes as a sweep: refused, or points in order with numbers that a page can show.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "plimsoll/report/curve.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const auto curve = report::parse_curve({reinterpret_cast<const char*>(data), size}, "sweep");
  if (!curve) return 0;
  Bytes before;
  for (const report::CurvePoint& point : curve->points) {
    if (point.peak < before || !std::isfinite(point.seconds) || point.seconds < 0 ||
        !std::isfinite(point.overhead))
      std::abort();
    before = point.peak;
  }
  return 0;
}
