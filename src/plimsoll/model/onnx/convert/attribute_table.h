// Which attributes an ONNX operator may have.
//
// An attribute that is not known must not be ignored: the next operator set may give it a meaning
// that changes the result. So every operator names the attributes that its converter honours, in
// any operator set; a node with another one is refused. What can only change precision or what only
// old files carry without a meaning (`stash_type`, `consumed_inputs`) is known and harmless.
#pragma once

#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/model/onnx/convert/operator_call.h"
#include "plimsoll/model/onnx/format/model_file.h"

namespace plimsoll::model::onnx {

// The names, separated by spaces; empty for an operator that has none.
std::string_view attributes_of(std::string_view domain, std::string_view op);

// Names the first attribute that the operator does not have.
Status check_attributes(const Operator& op, const NodeFile& node);

}  // namespace plimsoll::model::onnx
