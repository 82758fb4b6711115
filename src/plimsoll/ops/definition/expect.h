// The demands type rules make of their inputs, so that all operators word them alike:
//   conv: input 1 is fp16, expects fp32
#pragma once

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

// fp64, fp32, fp16 or bf16: what arithmetic is done in.
Status expect_float(const Call& call, int input);
Status expect_dtype(const Call& call, int input, ir::DType dtype);
// Absent optional inputs pass.
Status expect_one_float(const Call& call);
Status expect_integer(const Call& call, int input);
Status expect_rank(const Call& call, int input, int least, int most);
Status expect_shape(const Call& call, int input, const ir::Shape& shape);
Status expect_type(const Call& call, int input, ir::DType dtype, const ir::Shape& shape);
// dtype and shape of input `input` are those of input `model`.
Status expect_like(const Call& call, int input, int model);

// A real attribute that is finite and not negative (epsilon, momentum).
Status expect_not_negative(const Call& call, std::string_view attribute);

// The dtype statistics, normalisers and losses are kept in: fp64 stays, everything else is fp32.
inline ir::DType wide(ir::DType dtype) {
  return dtype == ir::DType::kF64 ? ir::DType::kF64 : ir::DType::kF32;
}
// Parameters of a normalisation may have the data's dtype or the wide one (master weights).
Status expect_own_or_wide(const Call& call, int input, ir::DType dtype);

}  // namespace plimsoll::ops
