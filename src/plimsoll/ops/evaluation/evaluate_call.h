// One operator on arrays, through its definition: infer, check, evaluate. What constant folding and
// tests of definitions want.
//
//   PLIMSOLL_TRY(auto y, evaluate_call("add", {a, b}));
#pragma once

#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/attributes.h"
#include "plimsoll/ops/evaluation/array.h"

namespace plimsoll::ops {

// The outputs, or the error of the definition's type rule.
Result<std::vector<Array>> evaluate_call(std::string_view op, const std::vector<Array>& inputs,
                                         const ir::Attributes& attributes = {});
// The same with null for an absent optional input.
Result<std::vector<Array>> evaluate_call(std::string_view op, std::vector<const Array*> inputs,
                                         const ir::Attributes& attributes = {});

// The types alone.
Result<std::vector<ir::TensorType>> infer_call(std::string_view op,
                                               const std::vector<ir::TensorType>& inputs,
                                               const ir::Attributes& attributes = {});

}  // namespace plimsoll::ops
