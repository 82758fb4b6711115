// Weights that stay in memory as their file has them, and are decoded where they are read.
//
//   y = linear(x, w)                w: 9.4 MB of fp32, from the first step to the last
//   y = linear(x, decode_weight(e)) e: 2.5 MB of q8_0; the 9.4 MB live for one operator
//
// The plan places what is decoded like any other result, so two of them side by side serve all
// layers. Where nothing has to be decoded whole, nothing is:
//
//   linear, w [N,K], or few rows of x   encoded_linear: tiles of w, or none
//   gather of rows                      encoded_gather: those rows
//
// Where a graph will be differentiated, linear layers of many rows read decoded weights instead:
// their gradients want them too, and the plan keeps them or decodes them again.
//
// For forward graphs that have not been laid out. What is computed with is what the file says,
// weight by weight, so lossless forms give the results of the plain model up to the order of sums.
#pragma once

#include <map>
#include <string>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

struct EncodedWeight {
  std::string form;
  ir::DType dtype = ir::DType::kF32;  // of the tensor in the file: fp32, fp16 or bf16
  Bytes bytes;                        // encoded, with its table (codec/weights/encoded_matrix.h)
};

// Whether such a weight can stay encoded: a matrix of fp32, or of more axes.
bool may_stay_encoded(const ir::Value& value);

struct KeepEncodedOptions {
  bool differentiated = false;
  // Products with int8 and q8_0 weights [N,K] round their activations to int8
  // (ops/products/encoded_weight.h).
  bool int8_activations = false;
};

// By the weights' names; those of other names stay as they are.
Result<ir::Graph> keep_encoded(const ir::Graph& graph,
                               const std::map<std::string, EncodedWeight>& weights,
                               const KeepEncodedOptions& options = {});

}  // namespace plimsoll::rewrite
