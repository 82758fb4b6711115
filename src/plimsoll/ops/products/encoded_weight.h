// Weights that stay in encoded form while a model runs (codec/weights/encoded_matrix.h): a tensor
// of bytes, and operators that read it.
//
//   decode_weight(w)            the weight in fp32, for whoever wants it whole; cheap to run again
//   encoded_linear(x, w, bias)  `linear` without the weight in fp32: a tile of it at a time, or for
//                               few rows of x, straight from the encoded form
//   encoded_gather(w, indices)  rows of it, as `gather` along axis 0
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

#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/definition/attribute_spec.h"

namespace plimsoll::ops {

// As the attributes say; nothing where they say what no weight is.
std::optional<codec::EncodedType> encoded_type(const AttributeReader& attributes);
// Attributes for a weight of this type and form. `dims` has the tensor's extents.
ir::Attributes encoded_attributes(const ir::Shape& dims, ir::DType dtype, std::string_view form);

// The weights of a graph that are encoded, each with a node that reads it. An error where two nodes
// read one as different things.
Result<std::map<ValueId, const ir::Node*>> encoded_weights(const ir::Graph& graph);

Var decode_weight(Var weight, const ir::Attributes& attributes);

}  // namespace plimsoll::ops
