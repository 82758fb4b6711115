#pragma once
#include "plimsoll/ops/builder.h"
namespace plimsoll::ops {
inline Var relu(Var x) { return x.builder().call1("relu", {x}); }
inline Var tanh(Var x) { return x.builder().call1("tanh", {x}); }
inline Var sigmoid(Var x) { return x.builder().call1("sigmoid", {x}); }
inline Var exp(Var x) { return x.builder().call1("exp", {x}); }
enum class GeluForm { kExact, kTanh };
inline Var gelu(Var x, GeluForm f = GeluForm::kExact) { return x.builder().call1("gelu", {x}, {{"approximate", std::string(f == GeluForm::kExact ? "none" : "tanh")}}); }
inline Var clip(Var x, double a, double b) { return x.builder().call1("clip", {x}, {{"min", a}, {"max", b}}); }
}
