// Weights with zeros: what is not zero, and where. A value is zero if all its bits are: -0 is kept.
//
//   bitmask   a bit a value, then the values            n/8 + k b     below 1 - 1/(8 b) of them
//   csr       for each row how many (4 bytes), then where in the row, then the values. Where is
//             either 16 bits each, or the distance to the one before in 8 bits, 255 being 255
//             steps and no value; the smaller, said by the first byte
//                                                       k (b + 2) or k (b + 1): below about 1/8
//   coo       4 bytes a place, then the values          k (b + 4): below 1/(8 b + 32) of them
//
// with n values, k of them not zero, of b bytes. All are lossless for elements of any
// type. Half of the values by a rule of place: two_of_four.h.
#pragma once

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

extern const WeightCodec kBitmaskWeights;
extern const WeightCodec kCooWeights;
extern const WeightCodec kCsrWeights;

}  // namespace plimsoll::codec
