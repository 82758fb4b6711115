// 2:4: of each four values the two largest, and two bits each for where they are.
//
//   chunk   for each two groups of four a byte: place of the first value that is kept, of the
//           second, which is greater, and the same of the next group; then the values, two a group
//
// n/2 b + n/8 bytes of n values of b. It is lossless only for tensors that were pruned that way;
// the processors that know the form compute with it directly, and so do products here.
#pragma once

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

extern const WeightCodec kTwoOfFourWeights;

}  // namespace plimsoll::codec
