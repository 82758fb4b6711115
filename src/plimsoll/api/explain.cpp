#include "plimsoll/api/explain.h"

#include <algorithm>
#include <charconv>

#include "plimsoll/base/nearest_name.h"

namespace plimsoll::api {
namespace {

Result<Step> step_of(const std::string& at, std::int64_t ticks) {
  std::int64_t step = 0;
  const auto [end, problem] = std::from_chars(at.data(), at.data() + at.size(), step);
  if (problem != std::errc() || end != at.data() + at.size()) {
    return fail(ErrorCode::kUsage, "--at {}: expects `peak` or the number of a step", at);
  }
  if (step < 0 || step >= ticks)
    return fail(ErrorCode::kUsage, "--at {}: the steps are 0 to {}", at, ticks - 1);
  return Step(step);
}

// The moment of the tensor's life when most is alive beside it.
Result<Step> busiest_step_of(const report::Account& account, const std::string& tensor) {
  const std::vector<Bytes> alive = report::bytes_by_tick(account);
  std::vector<std::string> names;
  std::int64_t best = -1;
  for (const report::Band& band : account.bands) {
    const std::string& name = account.texts.text(band.name);
    names.push_back(name);
    if (name != tensor || band.memory != 0) continue;
    for (std::int64_t t = band.life.begin.value; t < band.life.end.value; ++t) {
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
  const report::Peak peak = report::peak_of(subject.account);
  Explanation out;
  out.step = peak.tick;
  out.peak = peak.bytes;
  if (!tensor.empty()) {
    PLIMSOLL_TRY(out.step, busiest_step_of(subject.account, tensor));
  }
  if (!at.empty() && at != "peak") {
    PLIMSOLL_TRY(out.step, step_of(at, subject.account.ticks()));
  }
  if (at == "peak") out.step = peak.tick;
  out.alive = report::bytes_by_tick(subject.account)[static_cast<std::size_t>(out.step.value)];
  out.rows = subject.plan
                 ? report::alive_at(subject.account, out.step, *subject.plan, subject.profile)
                 : report::alive_at(subject.account, out.step);
  if (!tensor.empty()) {
    std::erase_if(out.rows, [&](const report::AliveRow& row) {
      return subject.account.texts.text(subject.account.bands[row.band].name) != tensor;
    });
  }
  out.account = std::move(subject.account);
  return out;
}

}  // namespace plimsoll::api
