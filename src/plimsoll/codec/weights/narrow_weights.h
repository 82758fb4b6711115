// Weights value by value in 16 and 8 bits; the table is in weight_codec.h.
//
// int8 and fp8 have a scale for each row that a chunk holds, or for the part of it that is in the
// chunk: so chunks stay independent, and a row that is cut has a finer scale, not a coarser one.
//
//   int8   [fp32 scale][a byte a value]   value = byte x scale
#pragma once

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

extern const WeightCodec kFp16Weights;
extern const WeightCodec kBf16Weights;
extern const WeightCodec kFp8Weights;
extern const WeightCodec kInt8Weights;

}  // namespace plimsoll::codec
