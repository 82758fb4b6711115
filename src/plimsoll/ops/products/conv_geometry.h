// The sizes of one convolution, checked, and its three products as reference loops. Internal to the
// convolution definitions.
//
// The loops build, for one place of the kernel and one channel, the row of data every result reads
// there (zero in the padding), and combine it with all output channels at once: the row is made
// once and the inner loop has unit stride.
#pragma once

#include "plimsoll/ops/op_definition.h"
#include "plimsoll/ops/reduction/window.h"

namespace plimsoll::ops {

struct ConvGeometry {
  Window window;
  std::int64_t batch = 0;
  std::int64_t group = 1;
  std::int64_t inputs = 0;   // channels of x in one group
  std::int64_t outputs = 0;  // channels of y in one group
  Volume data{};             // spatial extents of x
  Volume results{};          // spatial extents of y

  ir::Shape y_shape() const { return shape_of(batch, group * outputs, results, window.axes); }
  double operations() const;
};

// Of x[N,C,...] and w[M,C/group,...], or why they do not fit.
Result<ConvGeometry> conv_geometry(const ir::Shape& x, const ir::Shape& w,
                                   const AttributeReader& attributes);

// y += conv(x, w)
void add_conv(const ConvGeometry& geometry, const double* x, const double* w, double* y);
// dx += the gradient for x
void add_conv_grad_input(const ConvGeometry& geometry, const double* dy, const double* w,
                         double* dx);
// dw += the gradient for w
void add_conv_grad_weight(const ConvGeometry& geometry, const double* x, const double* dy,
                          double* dw);

// Over a tensor [N,C,...]: every element gets its channel's bias; or every channel gets its sum.
void add_bias(const Array& bias, Array& y);
void add_channel_sums(const Array& dy, Array& db);

}  // namespace plimsoll::ops
