// Fourier transforms and what stands around them: DFT, STFT, windows, mel filters.
//
// Complex numbers are pairs in the last axis; here they are two planes, of which the imaginary one
// is absent when the input is real. A transform of length n is a product with the n×n tables of
// cosines and sines; a long one is split once more (Cooley and Tukey), so that no table is larger
// than kLongestTable²:
//
//   n = a·b:  [.., a, b] → transforms of length a down the columns → times e^(−2πi·j·k/n)
//             → transforms of length b along the rows → read column by column
//
// Products with tables are linear operators like any other, so gradients need nothing new.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

constexpr std::int64_t kLongestTable = 1024;
constexpr std::int64_t kLongestTransform = 1 << 22;

struct Planes {
  Var re;
  Var im;  // absent: all zero
};

enum class TransformDirection { kForward, kInverse };

struct Tables {
  Var cos;
  Var sin;
};

// cos and sin of 2π·row·column/n, [rows, columns]; `weights` (one per row) may scale the rows.
Tables tables(OperatorCall& call, std::int64_t rows, std::int64_t columns, std::int64_t n,
              DType dtype, const std::vector<double>& weights = {}) {
  std::vector<double> cos;
  std::vector<double> sin;
  for (std::int64_t i = 0; i < rows; ++i) {
    const double weight = weights.empty() ? 1 : weights[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < columns; ++j) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(i * j % n) / static_cast<double>(n);
      cos.push_back(weight * std::cos(angle));
      sin.push_back(weight * std::sin(angle));
    }
  }
  const ir::Shape shape{rows, columns};
  return {call.constant(Array::of_reals(shape, std::move(cos), dtype)),
          call.constant(Array::of_reals(shape, std::move(sin), dtype))};
}

// (re + i·im)·(cos ∓ i·sin), with any product; − is forward.
template <class Product>
Planes turned(const Planes& x, const Tables& t, TransformDirection direction, Product product) {
  const double sign = direction == TransformDirection::kForward ? 1 : -1;
  Planes out{product(x.re, t.cos), product(x.re, t.sin) * -sign};
  if (x.im) out = {out.re + product(x.im, t.sin) * sign, out.im + product(x.im, t.cos)};
  return out;
}

// The last axis, n long, transformed.
Result<Planes> transform(OperatorCall& call, Planes x, std::int64_t n,
                         TransformDirection direction) {
  Builder& builder = call.builder();
  if (builder.error()) return x;
  if (n <= kLongestTable) {
    return turned(x, tables(call, n, n, n, x.re.dtype()), direction, [&](Var a, Var b) {
      return builder.call1("linear", {a, b});
    });
  }
  std::int64_t a = kLongestTable;
  while (n % a != 0) --a;
  if (a == 1)
    return bad_input(
        "a transform of length {}, whose smallest factor is above {}, is not supported", n,
        kLongestTable);
  const std::int64_t b = n / a;
  ir::Ints outer = dims_of(x.re.shape());
  outer.pop_back();
  const auto each = [&](Planes p, const auto& f) {
    return Planes{f(p.re), p.im ? f(p.im) : Var()};
  };
  const auto shaped = [&](ir::Ints tail) {
    return [&outer, tail](Var v) {
      ir::Ints shape = outer;
      shape.insert(shape.end(), tail.begin(), tail.end());
      return reshape_to(v, shape);
    };
  };
  const auto flipped = [](Var v) {
    ir::Ints perm = range(0, v.rank());
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return transpose_by(v, perm);
  };
  x = each(each(x, shaped({a, b})), flipped);
  PLIMSOLL_TRY(x, transform(call, x, a, direction));
  x = turned(x, tables(call, b, a, n, x.re.dtype()), direction, [](Var p, Var q) { return p * q; });
  x = each(x, flipped);
  PLIMSOLL_TRY(x, transform(call, x, b, direction));
  return each(each(x, flipped), shaped({n}));
}

// A half spectrum [.., m] back to n real numbers: what is missing mirrors what is there.
Var real_inverse(OperatorCall& call, Planes x, std::int64_t m, std::int64_t n) {
  std::vector<double> weights(static_cast<std::size_t>(m), 2.0 / static_cast<double>(n));
  weights.front() = 1 / static_cast<double>(n);
  if (n % 2 == 0 && m == n / 2 + 1) weights.back() = weights.front();
  const Tables t = tables(call, m, n, n, x.re.dtype(), weights);
  const auto product = [&](Var a, Var b) { return call.builder().call1("linear", {a, b}); };
  const Var y = product(x.re, t.cos);
  return x.im ? y - product(x.im, t.sin) : y;
}

// Cut, or filled with zeros, to the length.
Var fitted(Var x, std::int64_t length) {
  const std::int64_t have = x.dim(-1);
  if (have >= length) return slice_axis(x, x.rank() - 1, 0, length);
  ir::Ints pads(static_cast<std::size_t>(2 * x.rank()), 0);
  pads.back() = length - have;
  return x.builder().call1("pad", {x}, {{"pads", pads}});
}

Var pairs(const Planes& x) {
  ir::Ints shape = dims_of(x.re.shape());
  shape.push_back(1);
  return concat_all({reshape_to(x.re, shape), reshape_to(x.im, shape)},
                    static_cast<int>(shape.size()) - 1);
}

// The axis last, the pair in two planes.
Planes planes_of(Var x, int axis) {
  ir::Ints perm = range(0, x.rank() - 1);
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  const auto plane = [&](std::int64_t i) { return transpose_by(select(x, x.rank() - 1, i), perm); };
  return {plane(0), x.dim(-1) == 2 ? plane(1) : Var()};
}

Result<int> transformed_axis(OperatorCall& call) {
  std::int64_t axis = call.integer("axis", call.version() < 20 ? 1 : -2);
  if (call.version() >= 20) {
    PLIMSOLL_TRY(axis, call.known_integer(2, "axis", axis));
  }
  PLIMSOLL_TRY(const int normal, normal_axis_of(axis, call.rank(0)));
  if (normal == call.rank(0) - 1)
    return bad_input("axis {} is that of real and imaginary parts", axis);
  return normal;
}

Status dft(OperatorCall& call) {
  const int rank = call.rank(0);
  if (rank < 2 || call.shape(0)[rank - 1] < 1 || call.shape(0)[rank - 1] > 2) {
    return bad_input("the last axis of {} does not hold real or complex numbers",
                     ir::to_string(call.shape(0)));
  }
  PLIMSOLL_TRY(const int axis, transformed_axis(call));
  const auto direction =
      call.integer("inverse", 0) != 0 ? TransformDirection::kInverse : TransformDirection::kForward;
  const bool onesided = call.integer("onesided", 0) != 0;
  const bool to_real = onesided && direction == TransformDirection::kInverse;
  const std::int64_t have = call.shape(0)[axis];
  PLIMSOLL_TRY(const std::int64_t n,
               call.known_integer(1, "dft_length", to_real ? 2 * (have - 1) : have));
  if (n < 1 || n > kLongestTransform)
    return bad_input("a transform of length {} is not supported", n);
  Planes x = planes_of(call.in(0), axis);
  if (call.builder().error()) return {};
  ir::Ints back = range(0, rank - 2);
  back.insert(back.begin() + axis, rank - 2);
  back.push_back(rank - 1);
  const std::int64_t half = n / 2 + 1;
  const std::int64_t length = to_real ? half : n;
  x = {fitted(x.re, length), x.im ? fitted(x.im, length) : Var()};
  if (to_real) {
    if (half * n > kMostFolded / 4)
      return bad_input("a one-sided inverse of length {} is not supported", n);
    const Var y = real_inverse(call, x, half, n);
    ir::Ints shape = dims_of(y.shape());
    shape.push_back(1);
    return call.done(transpose_by(reshape_to(y, shape), back));
  }
  PLIMSOLL_TRY(Planes y, transform(call, x, n, direction));
  if (direction == TransformDirection::kInverse)
    y = {y.re / static_cast<double>(n), y.im / static_cast<double>(n)};
  if (onesided) y = {fitted(y.re, half), fitted(y.im, half)};
  return call.done(transpose_by(pairs(y), back));
}

// Overlapping frames of the signal, each times the window, each transformed.
Status stft(OperatorCall& call) {
  const int rank = call.rank(0);
  if (rank < 2 || rank > 3 || (rank == 3 && (call.shape(0)[2] < 1 || call.shape(0)[2] > 2))) {
    return bad_input("a signal of {} is not one of real or complex numbers",
                     ir::to_string(call.shape(0)));
  }
  PLIMSOLL_TRY(const std::int64_t step, call.known_integer(1, "frame_step", 1));
  PLIMSOLL_TRY(const std::int64_t length,
               call.known_integer(3, "frame_length",
                                  call.has(2) && call.rank(2) == 1 ? call.shape(2)[0] : 0));
  const std::int64_t samples = call.shape(0)[1];
  if (step < 1 || length < 1 || length > samples)
    return bad_input("frames of {} samples, {} apart, do not fit {} samples", length, step,
                     samples);
  const std::int64_t frames = (samples - length) / step + 1;
  if (frames > kMostFolded / 4 / length) return bad_input("there are too many frames");
  ir::Ints indices;
  for (std::int64_t f = 0; f < frames; ++f) {
    for (std::int64_t i = 0; i < length; ++i) indices.push_back(f * step + i);
  }
  const Var places = call.constant(Array::of_integers({frames, length}, std::move(indices)));
  Var x = call.in(0);
  if (rank == 2) x = reshape_to(x, {x.dim(0), samples, 1});
  Planes planes = planes_of(x, 1);
  const auto framed = [&](Var plane) {
    Var y = call.builder().call1("gather", {plane, places}, {{"axis", std::int64_t{1}}});
    return call.has(2) ? y * cast_to(call.in(2), y.dtype()) : y;
  };
  planes = {framed(planes.re), planes.im ? framed(planes.im) : Var()};
  PLIMSOLL_TRY(Planes y, transform(call, planes, length, TransformDirection::kForward));
  if (call.integer("onesided", 1) != 0)
    y = {fitted(y.re, length / 2 + 1), fitted(y.im, length / 2 + 1)};
  return call.done(pairs(y));
}

// a0 − a1·cos + a2·cos of the double angle.
Status cosine_window(OperatorCall& call, double a0, double a1, double a2) {
  PLIMSOLL_TRY(const std::int64_t size, call.known_integer(0, "size", 0));
  if (size < 0 || size > kMostFolded / 4) return bad_input("a window of {} makes no sense", size);
  PLIMSOLL_TRY(const DType dtype, call.attribute_dtype("output_datatype", ElementType::kFloat));
  const bool periodic = call.integer("periodic", 1) != 0;
  const double turns = static_cast<double>(periodic ? size : std::max<std::int64_t>(size - 1, 1));
  std::vector<double> out;
  for (std::int64_t i = 0; i < size; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / turns;
    out.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return call.done(Array::of_reals({size}, std::move(out), dtype));
}

Status hann_window(OperatorCall& call) {
  return cosine_window(call, 0.5, 0.5, 0);
}
Status hamming_window(OperatorCall& call) {
  return cosine_window(call, 25.0 / 46, 21.0 / 46, 0);
}
Status blackman_window(OperatorCall& call) {
  return cosine_window(call, 0.42, 0.5, 0.08);
}

// The spectrogram bins between which the triangles of a mel filter stand.
std::vector<std::int64_t> mel_edges(std::int64_t bands, std::int64_t length, double rate,
                                    double low, double high) {
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < bands + 2; ++i) {
    const double at =
        mel(low) + static_cast<double>(i) * (mel(high) - mel(low)) / static_cast<double>(bands + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / rate);
    out.push_back(static_cast<std::int64_t>(std::clamp(bin, 0.0, static_cast<double>(length / 2))));
  }
  return out;
}

Status mel_weight_matrix(OperatorCall& call) {
  PLIMSOLL_TRY(const std::int64_t bands, call.known_integer(0, "num_mel_bins", 0));
  PLIMSOLL_TRY(const std::int64_t length, call.known_integer(1, "dft_length", 0));
  PLIMSOLL_TRY(const double rate, call.known_real(2, "sample_rate", 0));
  PLIMSOLL_TRY(const double low, call.known_real(3, "lower_edge_hertz", 0));
  PLIMSOLL_TRY(const double high, call.known_real(4, "upper_edge_hertz", 0));
  PLIMSOLL_TRY(const DType dtype, call.attribute_dtype("output_datatype", ElementType::kFloat));
  if (bands < 1 || length < 1 || bands > kMostFolded || length > kMostFolded ||
      bands * (length / 2 + 1) > kMostFolded / 4 || !(rate > 0) || !(low >= 0) || !(high >= low) ||
      !std::isfinite(high)) {
    return bad_input("{} bands of a transform of length {} make no sense", bands, length);
  }
  const std::vector<std::int64_t> edges = mel_edges(bands, length, rate, low, high);
  std::vector<double> out(static_cast<std::size_t>(bands * (length / 2 + 1)), 0);
  for (std::int64_t i = 0; i < bands; ++i) {
    const auto at = [&](std::int64_t bin) -> double& {
      return out[static_cast<std::size_t>(bin * bands + i)];
    };
    const std::int64_t from = edges[static_cast<std::size_t>(i)];
    const std::int64_t centre = edges[static_cast<std::size_t>(i + 1)];
    const std::int64_t to = edges[static_cast<std::size_t>(i + 2)];
    if (centre == from) at(centre) = 1;
    for (std::int64_t j = from; j <= centre && centre > from; ++j)
      at(j) = static_cast<double>(j - from) / static_cast<double>(centre - from);
    for (std::int64_t j = centre; j < to; ++j)
      at(j) = static_cast<double>(to - j) / static_cast<double>(to - centre);
  }
  return call.done(Array::of_reals({length / 2 + 1, bands}, std::move(out), dtype));
}

}  // namespace

std::vector<Operator> signal_operators() {
  return {{"DFT", dft, "axis inverse onesided"},
          {"STFT", stft, "onesided"},
          {"HannWindow", hann_window, "output_datatype periodic", {}, false},
          {"HammingWindow", hamming_window, "output_datatype periodic", {}, false},
          {"BlackmanWindow", blackman_window, "output_datatype periodic", {}, false},
          {"MelWeightMatrix", mel_weight_matrix, "output_datatype", {}, false}};
}

}  // namespace plimsoll::model::onnx
