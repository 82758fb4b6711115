#include "plimsoll/report/curve.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kMostPoints = 10000;
constexpr double kMostBytes = 9e15;  // what a page's numbers hold exactly
constexpr double kMostCost = 1e300;  // of a DAG: seconds, or operations

// A number in [0, most]; absent counts as zero.
Result<double> number(const nlohmann::json& point, const char* key, double most, bool needed) {
  const auto found = point.find(key);
  if (found == point.end() && !needed) return 0.0;
  if (found == point.end()) return bad_input("sweep: a point lacks {}", key);
  if (!found->is_number()) return bad_input("sweep: {} is no number", key);
  const double value = found->get<double>();
  // The fastest plan may beat the no-recompute plan by a rounding error.
  if (!std::isfinite(value) || value < -1 || value > most)
    return bad_input("sweep: {} is {}, which no plan has", key, value);
  return std::max(value, 0.0);
}

Result<Bytes> bytes(const nlohmann::json& point, const char* key, bool needed = false) {
  PLIMSOLL_TRY(const double value, number(point, key, kMostBytes, needed));
  return Bytes(static_cast<std::int64_t>(value));
}

Result<CurvePoint> point_of(const nlohmann::json& stored) {
  if (!stored.is_object()) return bad_input("sweep: a point is no object");
  CurvePoint out;
  PLIMSOLL_TRY(out.peak, bytes(stored, "peak_bytes", true));
  PLIMSOLL_TRY(out.budget, bytes(stored, "budget_bytes"));
  PLIMSOLL_TRY(out.seconds, number(stored, "predicted_seconds", kMostCost, true));
  PLIMSOLL_TRY(out.overhead, number(stored, "overhead", 1e6, true));
  PLIMSOLL_TRY(out.lower_bound_overhead, number(stored, "lower_bound_overhead", 1e6, false));
  PLIMSOLL_TRY(const Bytes recomputed, bytes(stored, "recomputed"));
  out.recomputed = recomputed.value;
  PLIMSOLL_TRY(out.swapped, bytes(stored, "swapped_bytes"));
  PLIMSOLL_TRY(out.encoded, bytes(stored, "encoded_bytes"));
  return out;
}

}  // namespace

bool looks_like_curve(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.substr(0, 4096).find("\"points\"") != std::string_view::npos;
}

Result<Curve> parse_curve(std::string_view text, std::string title) {
  const auto tree = parse_json(text, {.bytes = std::size_t{64} << 20, .values = 1'000'000});
  if (!tree) return forward(tree, "sweep");
  const nlohmann::json& root = *tree;
  const auto points = root.find("points");
  if (points == root.end() || !points->is_array() || points->empty())
    return bad_input("sweep: it has no points");
  if (points->size() > kMostPoints)
    return bad_input("sweep: {} points are more than {}", points->size(), kMostPoints);
  Curve out;
  out.title = std::move(title);
  PLIMSOLL_TRY(out.keep_all_seconds, number(root, "keep_all_seconds", kMostCost, false));
  for (const nlohmann::json& stored : *points) {
    PLIMSOLL_TRY(const CurvePoint point, point_of(stored));
    out.points.push_back(point);
  }
  std::stable_sort(out.points.begin(), out.points.end(),
                   [](const CurvePoint& a, const CurvePoint& b) { return a.peak < b.peak; });
  return out;
}

}  // namespace plimsoll::report
