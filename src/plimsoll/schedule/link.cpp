#include "plimsoll/schedule/link.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "plimsoll/base/byte_size.h"

namespace plimsoll::schedule {
namespace {

double levels(std::int64_t ranks) {
  return std::ceil(std::log2(static_cast<double>(ranks)));
}

Result<double> parse_rate(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::kUsage, "link '{}': expects a rate such as 400Gb/s or 25GB/s", text);
  };
  if (!text.ends_with("/s")) return bad();
  std::string amount(text.substr(0, text.size() - 2));
  std::size_t used = 0;
  double number = 0;
  try {
    number = std::stod(amount, &used);
  } catch (const std::exception&) {
    return bad();
  }
  static const std::map<std::string, double> kUnits{{"b", 0.125},
                                                    {"Kb", 125},
                                                    {"Mb", 125e3},
                                                    {"Gb", 125e6},
                                                    {"Tb", 125e9},
                                                    {"B", 1},
                                                    {"KB", 1e3},
                                                    {"MB", 1e6},
                                                    {"GB", 1e9},
                                                    {"TB", 1e12},
                                                    {"KiB", 1024},
                                                    {"MiB", 1024.0 * 1024},
                                                    {"GiB", 1024.0 * 1024 * 1024}};
  const auto unit = kUnits.find(amount.substr(used));
  if (unit == kUnits.end() || !std::isfinite(number) || number <= 0) return bad();
  return number * unit->second;
}

}  // namespace

Result<Link> parse_link(const std::string& text) {
  Link out;
  const std::size_t comma = text.find(',');
  PLIMSOLL_TRY(out.bytes_per_second, parse_rate(std::string_view(text).substr(0, comma)));
  if (comma == std::string::npos) return out;
  PLIMSOLL_TRY(out.latency_seconds, parse_seconds(text.substr(comma + 1)));
  return out;
}

double all_reduce_seconds(const Link& link, std::int64_t ranks, Bytes bytes) {
  if (ranks <= 1) return 0;
  const auto n = static_cast<double>(ranks);
  const double whole = static_cast<double>(bytes.value) / link.bytes_per_second;
  const double ring = 2 * (n - 1) * (link.latency_seconds + whole / n);
  const double tree = 2 * levels(ranks) * (link.latency_seconds + whole);
  return std::min(ring, tree);
}

double scatter_seconds(const Link& link, std::int64_t ranks, Bytes bytes) {
  return all_reduce_seconds(link, ranks, bytes) / 2;
}

double broadcast_seconds(const Link& link, std::int64_t ranks, Bytes bytes) {
  if (ranks <= 1) return 0;
  const double whole = static_cast<double>(bytes.value) / link.bytes_per_second;
  return levels(ranks) * link.latency_seconds + 2 * whole;
}

Bytes bucket_size(const Link& link, std::int64_t ranks, Bytes all) {
  const double latency = all_reduce_seconds(link, ranks, Bytes(1));
  const double seconds = all_reduce_seconds(link, ranks, all);
  const double count = latency > 0 ? std::sqrt(seconds / latency) : 1;
  const double buckets = std::clamp(std::round(count), 1.0, static_cast<double>(kMostBuckets));
  return Bytes(std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(all.value) / buckets)));
}

}  // namespace plimsoll::schedule
