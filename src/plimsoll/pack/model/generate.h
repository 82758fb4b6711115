// Problems to try the packer on, from a seed.
//
//   tiling    a strip of 2000 x 1 MiB cut into rectangles by random guillotine cuts, then a share
//             of the pieces removed: a packing of 1 MiB exists by construction, and leaves no room
//             at peaks;
//   training  what training steps look like: activations that live from their forward to their
//             backward step, temporaries, gradients of activations, gradients of weights that live
//             to the end;
//   random    starts uniform, lengths and sizes log-uniform: no structure to exploit.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "plimsoll/pack/model/problem.h"

namespace plimsoll::pack {

enum class Family : std::uint8_t { kTiling, kTraining, kRandom };

std::optional<Family> family_named(std::string_view name);

// About n buffers (a tiling has exactly n before the holes). `holes` is the share of tiles removed.
Problem generate(Family family, std::size_t n, std::uint64_t seed, double holes = 0);

}  // namespace plimsoll::pack
