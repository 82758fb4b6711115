// What ranks that share state share, and in what portions it is sent.
#pragma once

#include "plimsoll/base/units.h"

namespace plimsoll::rewrite {

struct ShardOptions {
  Bytes bucket;                 // of gradients that are sent together
  Bytes alignment = Bytes(64);  // of tensors in the plan
  bool gradients = false;
  bool weights = false;
  bool table_rows = true;  // kernels make single rows of a table's gradient
};

}  // namespace plimsoll::rewrite
