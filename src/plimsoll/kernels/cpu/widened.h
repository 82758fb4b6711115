// bf16 for every fp32 kernel: inputs are widened into scratch, the fp32 kernel runs, results are
// narrowed.
//
// For operators that are bound by memory and rare in a mixed-precision step (normalisation, losses,
// embeddings); products and convolutions have bf16 kernels of their own. It costs a pass over each
// tensor and scratch for its fp32 form, both accounted for. A pointwise operator, such as an
// optimizer's update of a whole table, is widened kPiece elements at a time: AdamW on 38.6 million
// weights takes 3.5 MiB of scratch instead of 1 GiB.
#pragma once

#include "plimsoll/kernels/cpu/site.h"

namespace plimsoll::kernels {

// Null when the node has no bf16 tensor, or when `make` finds no kernel for the fp32 form.
std::unique_ptr<Kernel> make_widened(const Site& site, Factory make, bool pointwise = false);
inline constexpr std::int64_t kPiece = 1 << 17;

}  // namespace plimsoll::kernels
