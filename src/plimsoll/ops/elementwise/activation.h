// Activations: functions of one number with a fused gradient operator each.
//
//   y = gelu(x)        dx = gelu_grad(dy, x)
//
// A derivative such as GELU's is some ten elementwise operators; as one operator it reads two
// tensors and writes one. `<name>_grad` reads x, except `relu_grad`, `sigmoid_grad` and
// `tanh_grad`, which read y (then x need not be kept). Each carries its decomposition into simple
// operators; only second order uses it, and a test checks that both say the same.
//
// Names, attributes and defaults are ONNX's. At a kink the derivative is that of the side given
// here: relu, thresholded_relu, shrink: 0 at the threshold; leaky_relu, elu, celu: 1 at 0; clip: 1
// at both ends.
#pragma once

#include <optional>

#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

PLIMSOLL_OPERATOR_OF_ONE(relu)
Var leaky_relu(Var x, double alpha = 0.01);
Var elu(Var x, double alpha = 1);
inline constexpr double kSeluAlpha = 1.67326319217681884765625;
inline constexpr double kSeluGamma = 1.05070102214813232421875;
Var selu(Var x, double alpha = kSeluAlpha, double gamma = kSeluGamma);
Var celu(Var x, double alpha = 1);
Var hard_sigmoid(Var x, double alpha = 0.2, double beta = 0.5);
Var thresholded_relu(Var x, double alpha = 1);
Var shrink(Var x, double lambd = 0.5, double bias = 0);
enum class GeluForm { kExact, kTanh };
Var gelu(Var x, GeluForm form = GeluForm::kExact);
PLIMSOLL_OPERATOR_OF_ONE(silu)
PLIMSOLL_OPERATOR_OF_ONE(mish)
PLIMSOLL_OPERATOR_OF_ONE(hard_swish)
// An absent bound is open.
Var clip(Var x, std::optional<double> min, std::optional<double> max);

// dx from dy and y.
PLIMSOLL_OPERATOR_OF_TWO(relu_grad)
PLIMSOLL_OPERATOR_OF_TWO(sigmoid_grad)
PLIMSOLL_OPERATOR_OF_TWO(tanh_grad)

}  // namespace plimsoll::ops
