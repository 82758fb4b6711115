// Fit and pack until the arena is inside the budget.
//
// fit() bounds the bytes alive at once; the packer may need a little more. Where it does, only the
// stretch of the step in which some buffer ended above the budget has to hold less: the tasks that
// run there get extra scratch, by as much as the arena was too high, and the fit is repeated. The
// rest of the step keeps its bytes.
//
//   bytes alive   ▁▃▆█▆▃▁     packed: one buffer above the budget at steps 3..4
//   held back        ▲▲       so tasks 3..4 are fitted as if they needed more
//
// What is held back is found by quick searches; the first and the last may take long. Where they
// find none, because with a few large tensors the places move with every search, all of the step is
// searched under less. Extra scratch never exceeds budget − lower bound, so that holding back alone
// cannot make a task impossible. With options.deterministic nothing is held back: the answer is the
// fastest schedule of a ladder that does not depend on the budget (schedule::ladder) whose arena is
// inside it. So a smaller budget never gives a larger arena, and a larger one never a slower plan.
//
// All attempts together stay within options.deadline_seconds (packing itself takes counted work on
// top).
//
// Failures: kDoesNotFit below the proven lower bound, kNoAnswer above it; options.on_failure hears
// the numbers first.
#pragma once

#include "plimsoll/plan/fit/plan_options.h"

namespace plimsoll::plan {

// The candidates of options.deterministic, fastest first, whatever budget: worth keeping by whoever
// asks for many.
Result<std::vector<schedule::Fit>> deterministic_candidates(const schedule::GraphWorkload& mapped,
                                                            const PlanOptions& options);

// `candidates` may be null; only options.deterministic wants them.
Result<Plan> fit_budget(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
                        const PlanOptions& options, Bytes budget, PlanSummary& summary,
                        const std::vector<schedule::Fit>* candidates = nullptr);

}  // namespace plimsoll::plan
