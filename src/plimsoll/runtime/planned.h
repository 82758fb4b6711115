// The strategy that decided everything ahead: runs a plan in arenas taken once.
//
// Nothing is allocated during a step. A step of the plan is one kernel call, copy or codec call on
// addresses that are arena + offset: one command of a sequence that the device is given once and
// runs again and again (device/device.h). On a GPU that is one CUDA graph.
//
// What leaves the device waits in host memory, or in a swap file (device/cpu/swap_file.h). A copy
// that fails ends the step with its error; the streams stop where they are and nothing that was
// computed may be used.
//
// What it holds is the arena it took; what of that it touches, the arena is asked
// (device/cpu/touched_bytes.h), and a trace tells what kernels were handed (call_trace.h): neither
// is read from the plan. Behind the arena stands a guard page.
#pragma once

#include <memory>
#include <vector>

#include "plimsoll/plan/plan.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/runtime/plan_memory.h"

namespace plimsoll::runtime {

// The plan is checked first (check_plan.h); one that is wrong is refused with its first problem.
// With `arenas` it runs in memory that others run in too, at other times (planned_set.h).
Result<std::unique_ptr<Executor>> make_planned(plan::Plan plan, const ExecutorOptions& options,
                                               std::shared_ptr<Arenas> arenas = nullptr);

// What a trace calls a step of a plan: "layer/op", or what is done with which value: "send_out
// conv1".
std::string call_name(const plan::Plan& plan, const plan::PlanStep& step);

}  // namespace plimsoll::runtime
