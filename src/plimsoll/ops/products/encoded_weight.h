// Weights that stay in encoded form while a model runs (codec/weights/encoded_matrix.h): a tensor
// of bytes, and operators that read it.
//
//   decode_weight(w)            the weight in fp32, for whoever wants it whole; cheap to run again
//   encoded_linear(x, w, bias)  `linear` without the weight in fp32: a tile of it at a time, or for
//                               few rows of x, straight from the encoded form
//   encoded_gather(w, indices)  rows of it, as `gather` along axis 0
//
// With int8_activations=1, encoded_linear of a weight [N,K] rounds x to whole numbers from -127 to
// 127 times one scale for the whole tensor, that of its largest value in this step; where x has a
// value that is not finite, y is NaN. Gradients pass as if nothing were rounded.
//
//   w uint8[132710464]  {dims=[50257,768], dtype="fp32", form="q8_0"}
//
// `dims` and `dtype` are those of the tensor in the file, `form` is the one it was written in; each
// chunk says itself what it is (some may be raw), so `form` is for people. Bytes that are no such
// weight decode to zeros; whoever loads them checks first (runtime/model_weights.h).
//
// rewrite/keep_encoded.h puts them into a graph.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/definition/attribute_spec.h"

namespace plimsoll::ops {

// As the attributes say; nothing where they say what no weight is.
std::optional<codec::EncodedType> encoded_type(const AttributeReader& attributes);
// Attributes for a weight of this type and form. `dims` has the tensor's extents.
ir::Attributes encoded_attributes(const ir::Shape& dims, ir::DType dtype, std::string_view form);

// int8_activations=1.
bool rounds_activations(const AttributeReader& attributes);
// The scale of x rounded so, and what x is multiplied with; both 0 where x is, or is too small to
// be told from it; NaN where x is not finite.
struct Int8Scale {
  float scale = 0;
  float inverse = 0;
};
Int8Scale int8_scale(std::span<const float> x);

// The weights of a graph that are encoded, each with a node that reads it. An error where two nodes
// read one as different things.
Result<std::map<ValueId, const ir::Node*>> encoded_weights(const ir::Graph& graph);

Var decode_weight(Var weight, const ir::Attributes& attributes);

}  // namespace plimsoll::ops
