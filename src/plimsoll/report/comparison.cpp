#include "plimsoll/report/comparison.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

namespace plimsoll::report {
namespace {

constexpr const char* kGap = "space between buffers";

using SizesByName = std::map<std::string, std::vector<std::int64_t>>;

struct AtPeak {
  SizesByName tensors;  // sizes of equal names, largest first
  std::map<std::string, Bytes> layers;
  std::array<Bytes, kKindCount> kinds{};
  Bytes gap;
};

AtPeak at_peak(const Timeline& timeline) {
  AtPeak out;
  const Peak peak = peak_of(timeline);
  out.gap = total_of(timeline) - peak.bytes;
  for (const Allocation& allocation : timeline.allocations) {
    if (allocation.memory != 0 || !allocation.life.contains(peak.time_step)) continue;
    out.tensors[timeline.texts.text(allocation.name)].push_back(allocation.bytes.value);
    out.layers[timeline.texts.text(allocation.layer)] += allocation.bytes;
    out.kinds[static_cast<std::size_t>(allocation.kind)] += allocation.bytes;
  }
  for (auto& [name, sizes] : out.tensors) std::sort(sizes.begin(), sizes.end(), std::greater<>());
  return out;
}

template <typename Rows>
void sort_by_change(Rows& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const ComparedBytes& a, const ComparedBytes& b) {
    return std::llabs(a.growth().value) > std::llabs(b.growth().value);
  });
}

std::vector<ComparedBytes> join_layers(const AtPeak& before, const AtPeak& after) {
  std::map<std::string, ComparedBytes> joined;
  for (const auto& [name, bytes] : before.layers) joined[name].before = bytes;
  for (const auto& [name, bytes] : after.layers) joined[name].after = bytes;
  std::vector<ComparedBytes> out;
  for (auto& [name, row] : joined) {
    row.name = name.empty() ? "(no layer)" : name;
    out.push_back(row);
  }
  sort_by_change(out);
  return out;
}

// Matches names and files each pair of sizes under one of the parts.
class Matching {
 public:
  Matching(const AtPeak& before, const AtPeak& after, Comparison& out) : out_(out) {
    for (const auto& [name, sizes] : before.tensors) {
      const auto same = after.tensors.find(name);
      match(name, sizes, same == after.tensors.end() ? std::vector<std::int64_t>{} : same->second);
    }
    for (const auto& [name, sizes] : after.tensors) {
      if (!before.tensors.contains(name)) match(name, {}, sizes);
    }
    out_.parts = {{kGap, after.gap - before.gap,
                   fmt::format("arena minus live bytes: {} before, {} after", before.gap.value,
                               after.gap.value)},
                  {"same tensors, other size", resized_,
                   fmt::format("{} tensors; rounding shows here", resized_count_)},
                  {"alive only at the peak of " + out.after, only_after_,
                   fmt::format("{} tensors", after_count_)},
                  {"alive only at the peak of " + out.before, Bytes() - only_before_,
                   fmt::format("{} tensors", before_count_)}};
    sort_by_change(out_.by_tensor);
  }

 private:
  void match(const std::string& name, const std::vector<std::int64_t>& before,
             const std::vector<std::int64_t>& after) {
    ComparedBytes row{name, {}, {}};
    for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
      const bool both = i < before.size() && i < after.size();
      if (i < before.size()) row.before += Bytes(before[i]);
      if (i < after.size()) row.after += Bytes(after[i]);
      if (both) {
        resized_ += Bytes(after[i] - before[i]);
        resized_count_ += after[i] != before[i] ? 1 : 0;
      } else if (i < after.size()) {
        only_after_ += Bytes(after[i]);
        ++after_count_;
      } else {
        only_before_ += Bytes(before[i]);
        ++before_count_;
      }
    }
    if (row.growth().value != 0) out_.by_tensor.push_back(row);
  }

  Comparison& out_;
  Bytes resized_;
  Bytes only_before_;
  Bytes only_after_;
  int resized_count_ = 0;
  int before_count_ = 0;
  int after_count_ = 0;
};

}  // namespace

Comparison compare(const Timeline& before, const Timeline& after) {
  Comparison out;
  out.before = before.title;
  out.after = after.title;
  out.total_before = total_of(before);
  out.total_after = total_of(after);
  const AtPeak old_peak = at_peak(before);
  const AtPeak new_peak = at_peak(after);
  for (std::size_t k = 0; k < kKindCount; ++k) {
    if (old_peak.kinds[k].value == 0 && new_peak.kinds[k].value == 0) continue;
    out.by_kind.push_back(
        {std::string(name(static_cast<Kind>(k))), old_peak.kinds[k], new_peak.kinds[k]});
  }
  out.by_kind.push_back({kGap, old_peak.gap, new_peak.gap});
  out.by_layer = join_layers(old_peak, new_peak);
  Matching(old_peak, new_peak, out);
  return out;
}

}  // namespace plimsoll::report
