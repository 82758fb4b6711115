#include "plimsoll/codec/weights/weight_codecs.h"

#include <algorithm>
#include <array>

#include "plimsoll/codec/weights/archive.h"
#include "plimsoll/codec/weights/block_weights.h"
#include "plimsoll/codec/weights/exponent_code.h"
#include "plimsoll/codec/weights/narrow_weights.h"
#include "plimsoll/codec/weights/sparse_weights.h"
#include "plimsoll/codec/weights/ternary.h"
#include "plimsoll/codec/weights/two_of_four.h"

namespace plimsoll::codec {

std::span<const WeightCodec> weight_codecs() {
  static const std::array kAll = {
      kFp16Weights,    kBf16Weights,      kFp8Weights,          kInt8Weights,    kQ8_0Weights,
      kQ4_0Weights,    kQ4KWeights,       kNf4Weights,          kCooWeights,     kCsrWeights,
      kBitmaskWeights, kTwoOfFourWeights, kBf16LosslessWeights, kArchiveWeights, kTernaryWeights,
  };
  return kAll;
}

std::size_t row_elements(std::span<const std::uint64_t> dims) {
  constexpr std::uint64_t kShortRow = 32;
  if (dims.empty()) return 1;
  std::uint64_t out = dims.back();
  for (std::size_t i = dims.size() - 1; i > 1 && out > 0 && out < kShortRow; --i)
    out *= dims[i - 1];
  return std::max<std::uint64_t>(out, 1);
}

const WeightCodec* find_weight_codec(std::string_view name) {
  for (const WeightCodec& codec : weight_codecs())
    if (codec.name == name) return &codec;
  return nullptr;
}

}  // namespace plimsoll::codec
