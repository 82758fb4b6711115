// How a layer's weights get their first numbers, from the number of inputs and outputs a weight
// sees.
#pragma once

#include <cstdint>

#include "plimsoll/ir/graph.h"

namespace plimsoll::model {

inline ir::Init normal(double deviation) {
  return {ir::Init::Kind::kNormal, 0, deviation};
}
inline ir::Init constant(double value) {
  return {ir::Init::Kind::kConstant, value, 0};
}
inline ir::Init uniform(double bound) {
  return {ir::Init::Kind::kUniform, -bound, bound};
}

class InitRule {
 public:
  // What torch.nn.Linear and Conv2d do when nobody says otherwise: uniform within 1/sqrt(fan_in),
  // for the bias too.
  static InitRule torch_default() { return {Kind::kTorchDefault, 0}; }
  // Normal with variance 2/fan (He et al. 2015); the bias is zero.
  static InitRule kaiming_fan_in() { return {Kind::kKaimingIn, 0}; }
  static InitRule kaiming_fan_out() { return {Kind::kKaimingOut, 0}; }
  // Normal with this deviation; the bias is zero.
  static InitRule normal(double deviation) { return {Kind::kNormal, deviation}; }

  ir::Init weight(std::int64_t fan_in, std::int64_t fan_out) const;
  ir::Init bias(std::int64_t fan_in) const;

 private:
  enum class Kind { kTorchDefault, kKaimingIn, kKaimingOut, kNormal };
  InitRule(Kind kind, double deviation) : kind_(kind), deviation_(deviation) {}

  Kind kind_;
  double deviation_;
};

}  // namespace plimsoll::model
