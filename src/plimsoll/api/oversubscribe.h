// What `plimsoll oversubscribe` does: the same training step in less and less device memory, by
// every policy, run for real.
//
//   factor    arena of the default plan / capacity
//   demand, prefetch, pre-evict, belady   without a plan (runtime/paged.h); with "+dead" behind it
//             in a pool that does not know which tensors are dead
//   planned   a plan within the capacity, by every lossless technique that the device can do
//   uvm       managed memory: a model (runtime/paging/uvm_model.h)
//
// Every run must leave the losses of the run without a limit, bit by bit; one that does not is an
// internal error. Points that cannot be run (the operands of one operator exceed the capacity, no
// plan was found) say why.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/api/model_options.h"
#include "plimsoll/api/plan_request.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/report/oversubscription.h"

namespace plimsoll::api {

inline constexpr const char* kDefaultFactors = "1,1.1,1.25,1.5,2,3";
inline constexpr const char* kDefaultPolicies =
    "uvm,demand+dead,demand,prefetch,pre-evict,belady,planned";

struct OversubscribeRequest {
  ModelRequest model;
  PlanRequest planning;
  std::string factors = kDefaultFactors;
  std::string policies = kDefaultPolicies;
  int steps = 5;
  int prefetch = 16;
  std::shared_ptr<kernels::Backend> backend;  // where to run; absent: as the device says
  std::function<void(std::size_t done, std::size_t all)> on_measuring;
  std::function<void(const std::string& what)> on_point;  // before each run
};

Result<report::Oversubscription> oversubscribe(const OversubscribeRequest& request);

}  // namespace plimsoll::api
