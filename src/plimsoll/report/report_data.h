// The report as one JSON value: everything the page shows, and nothing it has to ask for.
//
// One or two timelines (a plan, a trace; planned and measured; before and after), each with its
// problem in a sentence (diagnosis.h), what is alive at its peak with reasons and prices, a plan's
// graph (graph_view.h), the tree of layers, the comparison where there are two,
// and the curve of a sweep where one was given. Large tables are columns (columns.h); series by
// kind, layer and phase are added only where there are more time steps than the page would sum by
// itself (kExactTimeSteps). docs/formats/report.md lists the keys.
//
// The text returned may stand inside a script element: every `<` in it is written as an escape, and
// bytes that are no UTF-8 are replaced, so no name from a model can end the element or become
// markup.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/report/comparison.h"
#include "plimsoll/report/curve.h"
#include "plimsoll/report/diagnosis.h"
#include "plimsoll/report/graph_view.h"
#include "plimsoll/report/rank_views.h"
#include "plimsoll/report/timeline.h"
#include "plimsoll/report/why_alive.h"

namespace plimsoll::report {

inline constexpr int kReportSchema = 3;
inline constexpr std::int64_t kExactTimeSteps = 65536;
inline constexpr std::size_t kMostPeakRows = 1000;

// A timeline with what was found out about it.
struct Chapter {
  Timeline timeline;
  std::vector<AliveRow> peak_set;
  Diagnosis diagnosis;
  std::optional<GraphView> graph;  // of a plan
};

Chapter chapter_of(Timeline timeline, Diagnosis diagnosis = {});
Chapter chapter_of(Timeline timeline, const plan::Plan& plan,
                   const schedule::DeviceProfile& profile);

struct Report {
  std::string title;
  std::vector<Chapter> chapters;         // none (a curve alone), one, two or one for each rank
  std::optional<Comparison> comparison;  // of two
  std::optional<Curve> curve;            // of a sweep over budgets
  std::vector<RankView> ranks = {};      // one for each chapter, where they are ranks of one run
};

std::string to_json(const Report& report);

}  // namespace plimsoll::report
