// archive: lossless and as small as cheap entropy coding makes it, for disks.
//
// Bytes of equal meaning stand together in planes: the exponents of all values, then sign and
// fraction, then lower bytes. Each plane goes through zstd at its fastest level with Huffman coding
// of literals, which finds no repetitions and so is nothing but the Huffman stage; one-byte
// elements go through level 3. A plane that does not shrink by a part of 32 is kept as it is.
//
//   chunk   for each plane: a byte (0: as it is, 1: zstd), 4 bytes length, the bytes
#pragma once

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

extern const WeightCodec kArchiveWeights;

}  // namespace plimsoll::codec
