// bf16-lossless: three bits for the exponent of a bf16 value instead of eight.
//
// A trained weight's sign and fraction are noise, but its exponent is not: a few magnitudes are
// nearly all there are (2.4 to 3.2 bits of entropy). Huffman's code gets to 0.66 of the size and is
// decoded bit by bit. Here every exponent has three bits: one of the seven commonest of its block,
// or the escape 7, whose exponent is written out. That is some 0.70 of the size, and 64 values are
// decoded by a dozen instructions.
//
//   chunk   for each block of 4096 values:  8 bytes   seven exponents, 0
//                                           2 bytes   how many escapes the block has
//           for each block:                 24 bytes for each 64 values: bit planes 0, 1, 2
//                                           a byte a value: sign (bit 7), fraction
//                                           the escaped exponents
//
// The last block is as long as the values are. fp32 tensors whose values are all bf16's (their
// lower halves are zero) are taken too; the rest of fp32 has too much noise for it.
//
// Checked: the length of each block before it is decoded, and that it has exactly as many escapes
// as codes 7.
#pragma once

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

extern const WeightCodec kBf16LosslessWeights;

}  // namespace plimsoll::codec
