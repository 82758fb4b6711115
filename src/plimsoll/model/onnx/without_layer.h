// For as long as it lives, what is built belongs to no layer: sources are named as in the file,
// whatever layer is being built.
#pragma once

#include <string>
#include <utility>

#include "plimsoll/ops/builder.h"

namespace plimsoll::model::onnx {

class WithoutLayer {
 public:
  explicit WithoutLayer(ops::Builder& builder) : builder_(builder), layer_(builder.layer()) {
    builder_.set_layer("");
  }
  ~WithoutLayer() { builder_.set_layer(std::move(layer_)); }
  WithoutLayer(const WithoutLayer&) = delete;
  WithoutLayer& operator=(const WithoutLayer&) = delete;

 private:
  ops::Builder& builder_;
  std::string layer_;
};

}  // namespace plimsoll::model::onnx
