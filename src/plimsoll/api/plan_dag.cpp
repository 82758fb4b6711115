#include "plimsoll/api/plan_dag.h"

#include "plimsoll/api/file_kind.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/comma_list.h"
#include "plimsoll/base/threads.h"

namespace plimsoll::api {

Result<PlanDagReport> plan_dag(const PlanDagRequest& request) {
  const PlanRequest& texts = request.planning;
  schedule::PlanDagOptions out;
  out.file = request.file;
  out.budget = texts.budget;
  PLIMSOLL_TRY(out.slowdown, parse_slowdown(texts));
  out.strategy = request.checkpointing;
  out.prove = request.prove;
  out.sweep = request.sweep;
  out.output = request.output;
  out.lossy = !texts.lossy.empty();
  if (out.lossy && texts.lossy != kBareLossy) {
    for (const std::string_view form : comma_list(texts.lossy)) out.lossy_forms.emplace_back(form);
  }
  PLIMSOLL_TRY(out.deadline_seconds, parse_seconds(texts.deadline));
  plan::PlanOptions asked;
  asked.remedies.lossy = out.lossy;
  PLIMSOLL_RETURN_IF_ERROR(
      read_techniques(texts.techniques.empty() ? "recompute" : texts.techniques, asked));
  out.fit.remedies = asked.remedies;
  PLIMSOLL_TRY(out.fit.order, parse_order(texts.order));
  out.fit.deterministic = texts.deterministic;
  out.fit.seed = request.seed;
  out.fit.threads = resolve_threads(request.threads);
  out.fit.stop = request.stop;
  if (request.on_better) {
    out.fit.on_better = [tell = request.on_better](const schedule::FitProgress& better) {
      tell(better.seconds, better.peak_bytes);
    };
  }
  auto report = schedule::plan_dag(out);
  if (report || report.error().code != ErrorCode::kBadInput) return report;
  // Of what is no graph at all its kind says more than what its first bytes are not.
  if (const auto kind = kind_of_file(request.file))
    return bad_input("{}: no graph but {}", request.file, *kind);
  return report;
}

}  // namespace plimsoll::api
