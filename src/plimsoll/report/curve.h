// Peak against time over budgets: what `plimsoll plan --sweep` found, as a picture's worth of
// points.
//
// Read from the JSON of a sweep (of a model or of a DAG): one object with `points`, largest budget
// first, each with `peak_bytes`, `predicted_seconds` and `overhead`. Points are put into order of
// their peak. A point is what a plan really takes, so the curve is a staircase: between two points
// the plan of the smaller one is the best that was found.
//
//   slower
//    +7 %  o
//    +4 %   `--o lower_bound_overhead: no plan within this budget can be faster, where proven
//      0        `-----o
//          160   170  185 MiB
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::report {

struct CurvePoint {
  Bytes budget;
  Bytes peak;
  double seconds = 0;
  double overhead = 0;  // relative to the no-recompute plan
  double lower_bound_overhead = 0;
  std::int64_t recomputed = 0;
  Bytes swapped;
  Bytes encoded;
  bool operator==(const CurvePoint&) const = default;
};

struct Curve {
  std::string title;
  double keep_all_seconds = 0;
  std::vector<CurvePoint> points;  // by peak, ascending; at least one
  bool operator==(const Curve&) const = default;
};

// True for a JSON object that has points; its content may still be refused.
bool looks_like_curve(std::string_view text);

Result<Curve> parse_curve(std::string_view text, std::string title);

}  // namespace plimsoll::report
