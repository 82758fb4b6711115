// The classic figure: feature maps of one model under the strategies people know, and under our
// own.
//
//   none         every result its own memory          ██████████████████
//   in place     results over inputs that die         ████████████
//   sharing      in place, and memory shared          ██████
//   drop-cheap   cheap results recomputed             ████
//   sqrt         √n segments                          ██
//   auto         the smallest within the overhead that is allowed █
//
// The last row uses the techniques of the options: recompute, unless told otherwise.
//
// Bytes are those of the arena without what persists between steps (weights, optimizer state,
// constants): what depends on the depth and the batch. Overheads are predicted by the device
// profile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plimsoll/plan/fit/plan_options.h"

namespace plimsoll::report {

inline constexpr double kAllowedOverhead = 0.30;

struct FigureRow {
  std::string name;
  Bytes feature_maps;
  double overhead = 0;  // a fraction of the time that keeping everything takes
  // of the feature maps, at the peak: without gradients; 0 where nothing was planned
  Bytes activations{};
};

struct ClassicFigure {
  std::string model;
  std::vector<FigureRow> rows;
};

using PlanWith = std::function<Result<plan::PlannedGraph>(const plan::PlanOptions&)>;

// `plan` plans the graph with other options. The search for the last row takes what is left of
// options.deadline_seconds.
Result<ClassicFigure> classic_figure(const ir::Graph& graph, const plan::PlanOptions& options,
                                     const PlanWith& plan,
                                     double allowed_overhead = kAllowedOverhead);

std::string to_json(const ClassicFigure& figure);
std::string to_svg(const ClassicFigure& figure);

}  // namespace plimsoll::report
