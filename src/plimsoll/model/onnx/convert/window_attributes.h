// The attributes that convolutions and poolings share, with ONNX's defaults filled in and auto_pad
// turned into pads.
#pragma once

#include "plimsoll/model/onnx/convert/operator_call.h"

namespace plimsoll::model::onnx {

struct WindowAttributes {
  ir::Ints kernel;
  ir::Ints strides;
  ir::Ints pads;  // begins then ends
  ir::Ints dilations;
  bool ceil_mode = false;

  int dims() const { return static_cast<int>(kernel.size()); }
};

// `kernel` of a tensor [N, C, spatial...]; checked: positive, sizes that fit, counts that match.
Result<WindowAttributes> window_attributes(OperatorCall& call, const ir::Shape& x,
                                           const ir::Ints& kernel);
// Those of a convolution in so many groups.
ir::Attributes convolution_attributes(const WindowAttributes& window, std::int64_t groups);
// The convolution of the first two inputs, plus the third where there is one.
Var convolved(OperatorCall& call, const WindowAttributes& window);

}  // namespace plimsoll::model::onnx
