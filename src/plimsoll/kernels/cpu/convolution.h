// Convolution and its two gradients through oneDNN.
//
// The layouts are those of the node's types: NCHW or channels-last tensors, weights plain or in the
// blocks oneDNN asks for. convolution_layout.h says which blocks those are, so that the layout pass
// can put a reorder in front: forward, data gradient and weight gradient want different ones.
#pragma once

#include "plimsoll/kernels/cpu/site.h"

namespace plimsoll::kernels {

std::unique_ptr<Kernel> make_convolution(const Site& site);
std::unique_ptr<Kernel> make_convolution_grad_input(const Site& site);
std::unique_ptr<Kernel> make_convolution_grad_weight(const Site& site);
std::unique_ptr<Kernel> make_convolution_transpose(const Site& site);

}  // namespace plimsoll::kernels
