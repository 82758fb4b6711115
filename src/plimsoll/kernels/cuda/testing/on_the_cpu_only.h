// Operators that a card has no kernel of, which an error must say. For tests only.
#pragma once

#include <set>
#include <string_view>

namespace plimsoll::kernels::cuda {

// Weights stay encoded on the CPU only; api/encoded_weights.h refuses to keep them so on a card.
inline const std::set<std::string_view> kOnTheCpuOnly = {"decode_weight", "encoded_gather",
                                                         "encoded_linear"};

}  // namespace plimsoll::kernels::cuda
