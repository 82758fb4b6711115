// Every form of weights, in one table.
#pragma once

#include <span>
#include <string_view>

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

// The order is that of the numbers in .plim files: new ones go to the end.
std::span<const WeightCodec> weight_codecs();
const WeightCodec* find_weight_codec(std::string_view name);

}  // namespace plimsoll::codec
