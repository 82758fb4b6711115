// Convolution in groups of a few channels over channels-last images.
//
// oneDNN has vector code for groups of whole blocks of 16 channels. Narrower ones (24 in RegNet, 4
// in ResNeXt) it computes as a product of matrices per group, through a copy of the image, at
// about half the speed of what follows. Here a group's results at a few neighbouring places stay
// in registers:
//
//   y[4 places, 24 filters]  +=  x[those places + tap, channel]  *  w[tap, channel, 24 filters]
//       12 vectors of 8             4 numbers, each in all lanes      3 vectors of 8
//
// The filters are packed in scratch as [group][tap][channel][filters, to whole vectors]. The data
// gradient at stride 1 is the same with the taps in reverse and channels and filters swapped. The
// weights' gradient keeps 4 channels x the filters of a group for one tap in registers over all
// rows of its task; tasks are groups times ranges of rows, as many as the shape says, and their
// sums are added in order: the bits do not depend on threads.
#pragma once

#include "plimsoll/kernels/cpu/convolution_descriptor.h"

namespace plimsoll::kernels {

// Whether a node of this direction is one of these: fp32, channels last, weights row-major, 4 to 32
// channels and filters in a group, in fours and not both in sixteens.
bool is_grouped(const Site& site, ConvolutionDirection direction);

// Only where is_grouped().
std::unique_ptr<Kernel> make_grouped(const Site& site, ConvolutionDirection direction);

}  // namespace plimsoll::kernels
