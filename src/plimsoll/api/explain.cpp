#include "plimsoll/api/explain.h"

#include <algorithm>
#include <charconv>

#include "plimsoll/base/nearest_name.h"

namespace plimsoll::api {
namespace {

Result<Step> step_of(const std::string& at, std::int64_t time_steps) {
  std::int64_t step = 0;
  const auto [end, problem] = std::from_chars(at.data(), at.data() + at.size(), step);
  if (problem != std::errc() || end != at.data() + at.size()) {
    return fail(ErrorCode::kUsage, "--at {}: expects `peak` or the number of a step", at);
  }
  if (step < 0 || step >= time_steps)
    return fail(ErrorCode::kUsage, "--at {}: the steps are 0 to {}", at, time_steps - 1);
  return Step(step);
}

// The moment of the tensor's life when most is alive beside it.
Result<Step> busiest_step_of(const report::Timeline& timeline, const std::string& tensor) {
  const std::vector<Bytes> alive = report::bytes_by_time_step(timeline);
  std::vector<std::string> names;
  std::int64_t best = -1;
  for (const report::Allocation& allocation : timeline.allocations) {
    const std::string& name = timeline.texts.text(allocation.name);
    names.push_back(name);
    if (name != tensor || allocation.memory != 0) continue;
    for (std::int64_t t = allocation.life.begin.value; t < allocation.life.end.value; ++t) {
      if (best < 0 || alive[static_cast<std::size_t>(t)] > alive[static_cast<std::size_t>(best)])
        best = t;
    }
  }
  if (best >= 0) return Step(best);
  const std::string near = nearest_name(tensor, names);
  if (near.empty()) return fail(ErrorCode::kUsage, "--tensor {}: no tensor has this name", tensor);
  return fail(ErrorCode::kUsage, "--tensor {}: no tensor has this name; did you mean {}?", tensor,
              near);
}

}  // namespace

Result<Explanation> explain(const std::string& name, const SubjectOptions& options,
                            const std::string& at, const std::string& tensor) {
  PLIMSOLL_TRY(Subject subject, read_subject(name, options));
  const report::Peak peak = report::peak_of(subject.timeline);
  Explanation out;
  out.step = peak.time_step;
  out.peak = peak.bytes;
  if (!tensor.empty()) {
    PLIMSOLL_TRY(out.step, busiest_step_of(subject.timeline, tensor));
  }
  if (!at.empty() && at != "peak") {
    PLIMSOLL_TRY(out.step, step_of(at, subject.timeline.time_steps()));
  }
  if (at == "peak") out.step = peak.time_step;
  out.alive =
      report::bytes_by_time_step(subject.timeline)[static_cast<std::size_t>(out.step.value)];
  out.rows = subject.alive_at(out.step);
  if (!tensor.empty()) {
    std::erase_if(out.rows, [&](const report::AliveRow& row) {
      return subject.timeline.texts.text(subject.timeline.allocations[row.allocation].name) !=
             tensor;
    });
  }
  out.timeline = std::move(subject.timeline);
  return out;
}

}  // namespace plimsoll::api
