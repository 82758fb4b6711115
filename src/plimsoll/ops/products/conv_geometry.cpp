#include "plimsoll/ops/products/conv_geometry.h"

#include "plimsoll/ops/products/dense.h"

namespace plimsoll::ops {
namespace {

// The walk all three products share; nothing to do where there are no elements. body(weight offset
// of output channel 0, stride between output channels, x's plane, y's first plane of the group,
// read positions).
template <typename Body>
void for_each_row(const ConvGeometry& g, Body body) {
  if (g.batch == 0 || g.inputs == 0 || g.outputs == 0) return;
  const std::int64_t kernel = elements(g.window.kernel);
  const std::int64_t data = elements(g.data);
  const std::int64_t results = elements(g.results);
  for_each_place(g.window, g.data, g.results,
                 [&](std::int64_t place, const std::vector<std::int64_t>& reading) {
                   for (std::int64_t n = 0; n < g.batch; ++n) {
                     for (std::int64_t group = 0; group < g.group; ++group) {
                       for (std::int64_t c = 0; c < g.inputs; ++c) {
                         const std::int64_t weight =
                             (group * g.outputs * g.inputs + c) * kernel + place;
                         const std::int64_t x_plane = ((n * g.group + group) * g.inputs + c) * data;
                         const std::int64_t y_plane = (n * g.group + group) * g.outputs * results;
                         body(weight, g.inputs * kernel, x_plane, y_plane, reading);
                       }
                     }
                   }
                 });
}

void gather(const double* plane, const std::vector<std::int64_t>& reading,
            std::vector<double>& row) {
  row.resize(reading.size());
  for (std::size_t i = 0; i < reading.size(); ++i)
    row[i] = reading[i] == kOutside ? 0 : plane[reading[i]];
}

}  // namespace

double ConvGeometry::operations() const {
  return 2.0 * static_cast<double>(y_shape().elements()) * static_cast<double>(inputs) *
         static_cast<double>(window.kernel[0]) * static_cast<double>(window.kernel[1]) *
         static_cast<double>(window.kernel[2]);
}

Result<ConvGeometry> conv_geometry(const ir::Shape& x, const ir::Shape& w,
                                   const AttributeReader& attributes) {
  if (x.rank() < 3 || x.rank() > 5)
    return bad_input("input has shape {}, expects a rank of 3 to 5", ir::to_string(x));
  if (w.rank() != x.rank()) {
    return bad_input("weight has shape {}, expects the input's rank of {}", ir::to_string(w),
                     x.rank());
  }
  ConvGeometry out;
  PLIMSOLL_TRY(out.window, read_window(attributes, w.dims().subspan(2)));
  out.group = attributes.integer("group");
  if (out.group < 1 || w[0] % out.group != 0) {
    return bad_input("group is {}, expects a divisor of the weight's {} output channels", out.group,
                     w[0]);
  }
  if (x[1] % out.group != 0 || x[1] / out.group != w[1]) {
    return bad_input("input has {} channels in {} groups, weight expects {} in each", x[1],
                     out.group, w[1]);
  }
  out.batch = x[0];
  out.inputs = w[1];
  out.outputs = w[0] / out.group;
  out.data = volume_of(x);
  PLIMSOLL_TRY(out.results, places(out.window, x));
  return out;
}

void add_conv(const ConvGeometry& g, const double* x, const double* w, double* y) {
  const std::int64_t results = elements(g.results);
  std::vector<double> row;
  for_each_row(g, [&](std::int64_t weight, std::int64_t stride, std::int64_t x_plane,
                      std::int64_t y_plane, const std::vector<std::int64_t>& reading) {
    gather(x + x_plane, reading, row);
    for (std::int64_t m = 0; m < g.outputs; ++m) {
      axpy(results, w[weight + m * stride], row.data(), y + y_plane + m * results);
    }
  });
}

void add_conv_grad_input(const ConvGeometry& g, const double* dy, const double* w, double* dx) {
  const std::int64_t results = elements(g.results);
  std::vector<double> row;
  for_each_row(g, [&](std::int64_t weight, std::int64_t stride, std::int64_t x_plane,
                      std::int64_t y_plane, const std::vector<std::int64_t>& reading) {
    row.assign(reading.size(), 0.0);
    for (std::int64_t m = 0; m < g.outputs; ++m) {
      axpy(results, w[weight + m * stride], dy + y_plane + m * results, row.data());
    }
    for (std::size_t i = 0; i < reading.size(); ++i) {
      if (reading[i] != kOutside) dx[x_plane + reading[i]] += row[i];
    }
  });
}

void add_conv_grad_weight(const ConvGeometry& g, const double* x, const double* dy, double* dw) {
  const std::int64_t results = elements(g.results);
  std::vector<double> row;
  for_each_row(g, [&](std::int64_t weight, std::int64_t stride, std::int64_t x_plane,
                      std::int64_t y_plane, const std::vector<std::int64_t>& reading) {
    gather(x + x_plane, reading, row);
    for (std::int64_t m = 0; m < g.outputs; ++m) {
      dw[weight + m * stride] += dot(results, row.data(), dy + y_plane + m * results);
    }
  });
}

void add_bias(const Array& bias, Array& y) {
  const std::int64_t channels = y.type.shape[1];
  const std::int64_t plane = y.type.shape.elements(2, y.type.shape.rank());
  double* at = y.reals.data();
  for (std::int64_t i = 0; i < y.type.shape[0] * channels; ++i) {
    const double value = bias.reals.data()[i % channels];
    for (std::int64_t j = 0; j < plane; ++j) *at++ += value;
  }
}

void add_channel_sums(const Array& dy, Array& db) {
  const std::int64_t channels = dy.type.shape[1];
  const std::int64_t plane = dy.type.shape.elements(2, dy.type.shape.rank());
  const double* at = dy.reals.data();
  for (std::int64_t i = 0; i < dy.type.shape[0] * channels; ++i) {
    double& sum = db.reals.data()[i % channels];
    for (std::int64_t j = 0; j < plane; ++j) sum += *at++;
  }
}

}  // namespace plimsoll::ops
