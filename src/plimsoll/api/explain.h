// What is alive at a step, why, and the price of removing it: what `plimsoll explain` prints.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/api/view.h"

namespace plimsoll::api {

struct Explanation {
  report::Timeline timeline;
  Step step;
  Bytes alive;
  Bytes peak;
  std::vector<report::AliveRow> rows;  // largest first; only the tensor asked for, where one was
};

// `at` is "peak" or a step; empty: the peak, or the largest moment of the tensor. `tensor` is a
// name; an unknown one is an error that suggests the nearest.
Result<Explanation> explain(const std::string& name, const SubjectOptions& options,
                            const std::string& at, const std::string& tensor);

}  // namespace plimsoll::api
