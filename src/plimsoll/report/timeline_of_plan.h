// A plan as a timeline: a time step is a step of the plan, an allocation is a buffer at its offset.
//
// A buffer holds a chain of results that take over each other's memory. Its allocation is named
// after the first, lives as long as the buffer, was produced by the step that first writes it and
// is last read by the step that last reads any of it: so "why is this alive" is answered from the
// steps that will run, not from the edges of the graph.
//
// The plan must have passed check_plan(). Linear in steps and buffers.
#pragma once

#include "plimsoll/plan/plan.h"
#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

Timeline timeline_of(const plan::Plan& plan, std::string title);

// "encoder.3/matmul" for what computes, "send_out encoder.3/matmul" for what moves,
// "encode encoder.3/matmul (int8, lossy)" for what changes its form.
std::string step_name(const plan::Plan& plan, const plan::PlanStep& step);

}  // namespace plimsoll::report
