// A few steps of a small built-in model on any backend, and what they left behind.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "plimsoll/api/model_options.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/runtime/run.h"
#include "plimsoll/runtime/testing/left_behind.h"

namespace plimsoll::api {

struct SmallRunOptions {
  std::shared_ptr<kernels::Backend> backend{};  // absent: the CPU, with one thread
  std::string budget{};                         // met by recomputing
  bool swap = false;                            // or swapping
  bool on_demand = false;
  bool poison = false;
  bool measure = false;
  int streams = 1;
  int steps = 3;
  std::int64_t layers = 0;  // 0: those of small_sizes()
  std::string amp{};
  std::optional<runtime::PagingOptions> paging{};  // with on_demand
  std::string swap_file{};
};

struct SmallRun {
  runtime::LeftBehind left;
  runtime::RunReport report;
};

// At small_sizes() but for the batch, by SGD, on one thread.
ModelRequest small_request(const std::string& model);

// Nothing is timed and searches count instead of looking at the clock: the same every time.
Result<SmallRun> run_small(const std::string& model, const SmallRunOptions& options);

// In less memory than it takes without a limit, by every policy and in both pools: the same bits,
// within the capacity. Fails the current test where that is not so.
void expect_paging_keeps_the_bits(const std::string& model,
                                  const std::function<std::shared_ptr<kernels::Backend>()>& device);

}  // namespace plimsoll::api
