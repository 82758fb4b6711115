// The outputs of many batches, one behind the other: inference over a data set.
//
// An output whose first axis is the batch grows row by row; of any other the last step's is kept.
// They wait in host memory until the run ends.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/runtime/executor.h"
#include "plimsoll/store/npy.h"

namespace plimsoll::runtime {

class OutputRows {
 public:
  // After a step: the first `rows` of its `batch` examples.
  void add(Executor& executor, std::int64_t batch, std::int64_t rows);
  // As one archive.
  Status save(const std::string& path) const;

 private:
  std::vector<store::NamedTensor> arrays_;
};

}  // namespace plimsoll::runtime
