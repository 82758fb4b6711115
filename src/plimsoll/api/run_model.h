// What `plimsoll run` does: a model, a plan file, or a plan set whose size changes every step.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "plimsoll/api/model_options.h"
#include "plimsoll/api/plan_request.h"
#include "plimsoll/api/plan_set.h"
#include "plimsoll/runtime/model_weights.h"
#include "plimsoll/runtime/run.h"
#include "plimsoll/runtime/run_files.h"

namespace plimsoll::api {

using kernels::Rounding;
using runtime::by_form;
using runtime::FormReport;
using runtime::PagingReport;
using runtime::rms_error;
using runtime::RunFiles;
using runtime::RunReport;
using runtime::typical_seconds;
using runtime::WeightsLoaded;

// Steps in less device memory than the tensors take (runtime/paged.h).
struct PagingRequest {
  std::string policy;    // demand, prefetch, pre-evict, belady or planned; empty: no paging
  std::string capacity;  // of device memory, in bytes
  int prefetch = 16;
  bool keep_dead = false;
};

struct RunRequest {
  ModelRequest model;  // or a plan file, by its name
  PlanRequest planning;
  Ranks ranks;                       // joined before (ranks.h)
  std::string executor = "planned";  // or on-demand
  PagingRequest paging;
  RunFiles files;
  std::optional<SizeGrid> sizes;
  int steps = 3;
  bool steps_given = false;  // by the user: --inputs alone means one step, or each example once
  bool find_nan = false;
  const std::atomic<bool>* stop = nullptr;
  bool random = false;  // made-up inputs are what the outputs are wanted for
  bool poison = false;
  bool measure = false;
  std::shared_ptr<kernels::Backend> backend;  // where to run; absent: as the device says
  std::function<void(int step, std::optional<double> loss, double seconds)> on_step;
  std::function<void(std::size_t done, std::size_t all)> on_measuring;
  std::function<void()> on_prepared;
  std::function<void(double predicted_seconds, double measured_seconds)> on_tuned;
};

// With `sizes` they come in turn, one a step.
std::vector<std::int64_t> sizes_of_step(const SizeGrid& grid, std::size_t step);

Result<RunReport> run_model(const RunRequest& request);

}  // namespace plimsoll::api
