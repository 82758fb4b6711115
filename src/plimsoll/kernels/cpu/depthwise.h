// Depthwise convolution over channels-last images: every channel by itself, one filter each.
//
// Nothing is summed over channels, so a vector holds 16 neighbouring channels of one place and each
// tap of the filter is one multiplication of two vectors:
//
//   y[place, c..c+16)  +=  x[place + tap, c..c+16)  *  w[tap, c..c+16)
//
// Per result there are as many multiplications as taps and two tensors to move: 7 x 7 over 56 x 56
// x 96, batch 8, is 0.24 Gflop and 19 MB, about a millisecond of either on two cores. So the loops
// only have to read every line of memory once and keep sums in registers; oneDNN 2.6 has no code
// of that kind for the weights' gradient of filters wider than 3, and what it does instead took
// fifty times as long in a step of ConvNeXt.
//
// How. The filters are turned to [tap][channel] in scratch. Six results of a row are summed at a
// time where the whole filter lies inside the image, and one result of 64 channels at the borders,
// with only the taps inside. The data gradient at stride 1 is the same with the filters turned
// round; else it sums over the results that read a place. The weights' gradient keeps the sums of
// (up to) seven taps of a row of the filter in registers along a row of the image; its tasks are
// blocks of 64 channels times ranges of rows, as many as the shape says, whose sums are added in
// order: the bits do not depend on threads.
#pragma once

#include "plimsoll/kernels/cpu/convolution_descriptor.h"

namespace plimsoll::kernels {

// Whether a node of this direction is one of these: fp32, channels last, weights row-major, one
// filter a channel, and at stride 1 or without dilation.
bool is_depthwise(const Site& site, ConvolutionDirection direction);

// Only where is_depthwise().
std::unique_ptr<Kernel> make_depthwise(const Site& site, ConvolutionDirection direction);

}  // namespace plimsoll::kernels
