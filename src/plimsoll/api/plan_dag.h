// What `plimsoll plan --dag FILE` does with a weighted DAG of the user: schedule/plan_dag.h, with
// the options as texts.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "plimsoll/api/plan_request.h"
#include "plimsoll/schedule/plan_dag.h"

namespace plimsoll::api {

using schedule::DagProof;
using schedule::PlanDagPoint;
using schedule::PlanDagReport;
using schedule::to_json;

struct PlanDagRequest {
  std::string file;
  PlanRequest planning;       // budget, techniques, order, deadline, lossy and deterministic count
  std::string checkpointing;  // a classic checkpointing strategy instead of a search
  std::uint64_t seed = 1;
  int threads = 0;  // 0: one for every core
  bool prove = false;
  bool sweep = false;
  std::filesystem::path output;  // where the schedule goes; empty: nowhere
  OnBetter on_better;
  const std::atomic<bool>* stop = nullptr;
};

Result<PlanDagReport> plan_dag(const PlanDagRequest& request);

}  // namespace plimsoll::api
