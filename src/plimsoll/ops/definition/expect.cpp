#include "plimsoll/ops/definition/expect.h"

#include <cmath>

namespace plimsoll::ops {

Status expect_float(const Call& call, int input) {
  switch (call.type(input).dtype) {
    case ir::DType::kF64:
    case ir::DType::kF32:
    case ir::DType::kF16:
    case ir::DType::kBF16:
      return {};
    default:
      break;
  }
  return bad_input("input {} is {}, expects fp64, fp32, fp16 or bf16", input,
                   ir::name(call.type(input).dtype));
}

Status expect_dtype(const Call& call, int input, ir::DType dtype) {
  const ir::DType given = call.type(input).dtype;
  if (given == dtype) return {};
  return bad_input("input {} is {}, expects {}", input, ir::name(given), ir::name(dtype));
}

Status expect_one_float(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  for (int i = 1; i < call.size(); ++i) {
    if (call.has(i)) PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, i, call.type(0).dtype));
  }
  return {};
}

Status expect_integer(const Call& call, int input) {
  const ir::DType given = call.type(input).dtype;
  if (given == ir::DType::kI64 || given == ir::DType::kI32) return {};
  return bad_input("input {} is {}, expects int64 or int32", input, ir::name(given));
}

Status expect_rank(const Call& call, int input, int least, int most) {
  const int rank = call.shape(input).rank();
  if (rank >= least && rank <= most) return {};
  return bad_input("input {} has shape {}, expects a rank of {} to {}", input,
                   ir::to_string(call.shape(input)), least, most);
}

Status expect_shape(const Call& call, int input, const ir::Shape& shape) {
  if (call.shape(input) == shape) return {};
  return bad_input("input {} has shape {}, expects {}", input, ir::to_string(call.shape(input)),
                   ir::to_string(shape));
}

Status expect_type(const Call& call, int input, ir::DType dtype, const ir::Shape& shape) {
  PLIMSOLL_RETURN_IF_ERROR(expect_dtype(call, input, dtype));
  return expect_shape(call, input, shape);
}

Status expect_like(const Call& call, int input, int model) {
  return expect_type(call, input, call.type(model).dtype, call.shape(model));
}

Status expect_not_negative(const Call& call, std::string_view attribute) {
  const double value = call.attributes().real(attribute);
  if (std::isfinite(value) && value >= 0) return {};
  return bad_input("{} is {}, expects a number of at least 0", attribute, value);
}

Status expect_own_or_wide(const Call& call, int input, ir::DType dtype) {
  if (call.type(input).dtype == wide(dtype)) return {};
  return expect_dtype(call, input, dtype);
}

}  // namespace plimsoll::ops
