// Finds the operator that made the first number that is none: `run --find-nan`.
//
// Every kernel is wrapped: before it runs its inputs are looked through, afterwards its results.
// An operator makes a NaN when there is one in its results and none in what it read; the same for
// an infinity. What only passes one on is not blamed. A mask of infinities is an input like any
// other, so the operators that read it make none.
//
//   NanFinder finder;
//   options.watch_kernel = finder.watch(device);  // every node gets a kernel of its own
//   ...
//   finder.look_at(executor);                    // inputs and weights, before a step
//   if the loss is not finite: finder.what()     // "step 3: block.0/div made ..."
//
// Values in blocked layouts are not looked at (their padding holds anything). Results of several
// streams are taken in the order in which kernels end. Cost: every tensor is read twice more, and
// on a GPU copied to the host for it: kernels are launched one by one and waited for.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

class NanFinder {
 public:
  // The wrapper; the finder must outlive the kernels, and the device (null: the CPU) both.
  WatchKernel watch(device::Device* device);
  // A step begins: the inputs are looked through, in the first step the weights and states too.
  Status look_at(Executor& executor, int step);
  // What was found: one sentence, or empty.
  std::string what() const;

 private:
  friend class WatchedKernel;
  struct Count {
    std::int64_t nans = 0;
    std::int64_t infinities = 0;
  };
  static Count count(const ir::TensorType& type, const std::byte* memory);
  void made(const ir::Node& node, const ir::Value& value, Count before, Count after);

  mutable std::mutex mutex_;
  int step_ = 0;
  std::string source_;  // a source that held one
  std::string nan_;
  std::string infinity_;
};

// Whether some output of the step that is a float is NaN or infinite; of a training step, its loss.
bool has_bad_result(Executor& executor);

}  // namespace plimsoll::runtime
