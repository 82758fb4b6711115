// Runs one operator twice, with its kernel and with its definition's reference evaluation, and
// compares.
//
// Every use also checks what a kernel promises: it is a hand-made one and not the fallback; it
// writes nothing behind its outputs or its scratch; it does not depend on what scratch held; two
// runs, and runs with 1 and 2 threads, have the same bits; a result laid over an input, where
// definition and kernel allow it, is the same result. For tests only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/ir/graph.h"

namespace plimsoll::kernels {

struct Tensor {
  ir::TensorType type;
  double low = -2;  // contents are uniform in [low, high)
  double high = 2;
  bool absent = false;
  std::vector<double> values{};  // where given, the contents instead, repeated to the end
};

inline Tensor f32(const ir::Shape& shape) {
  return {{ir::DType::kF32, shape, {}}};
}
inline Tensor bf16(const ir::Shape& shape) {
  return {{ir::DType::kBF16, shape, {}}};
}
inline Tensor last(const ir::Shape& shape) {
  return {{ir::DType::kF32, shape, ir::Layout::channels_last(shape.rank())}};
}
inline Tensor i64(const ir::Shape& shape, double high) {
  return {{ir::DType::kI64, shape, {}}, 0, high};
}
inline Tensor positive(Tensor tensor) {
  tensor.low = 0.1;
  return tensor;
}
inline Tensor none() {
  return {.type = {}, .absent = true};
}

struct Differential {
  std::string op;
  std::vector<Tensor> inputs;
  ir::Attributes attributes{};
  std::vector<std::optional<ir::Layout>>
      layouts{};            // of outputs, where not what the definition infers
  double tolerance = 2e-5;  // relative to the largest magnitude of the output
  bool same_bits_on_any_threads = true;
  // Each element has its own tolerance, relative to itself, and zeros have the right sign. For
  // operators whose elements do not depend on each other: beside 3e38 a common tolerance would
  // forgive everything.
  bool each_alone = false;
  // Elements that are infinite or NaN on either side are passed over: whether a library multiplies
  // padding (0 times infinity is NaN) or leaves it out is its own affair.
  bool only_finite = false;
  bool may_fall_back = false;  // to the reference evaluation (empty tensors, bf16)
};

// Fails the current test with the operator's signature.
void expect_agreement(const Differential& differential);

}  // namespace plimsoll::kernels
