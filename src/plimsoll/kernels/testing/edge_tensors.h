// Tensors of the values that ordinary tests leave out, for edge_examples.h. For tests only.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/codec/weights/float_values.h"
#include "plimsoll/codec/weights/weight_codecs.h"
#include "plimsoll/kernels/testing/differential.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels::edge {

using ir::Attributes;
using ir::Ints;

inline constexpr std::int64_t kEmptied = 7;
inline constexpr std::int64_t kIntegers = 11;
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kMost = std::numeric_limits<float>::max();
inline constexpr double kNormal = std::numeric_limits<float>::min();
inline constexpr double kDenormal = std::numeric_limits<float>::denorm_min();

inline const std::vector<double>& edges() {
  static const std::vector<double> kEdges = {
      kNan,    kInf,     -kInf, 0.0,    -0.0,  kDenormal, -kDenormal, 1e-40, -1e-40,
      kNormal, -kNormal, kMost, -kMost, 1e-20, -1e-20,    1e20,       -1e20, 0.25,
      -0.25,   0.5,      -0.5,  1,      -1,    1.5,       -1.5,       2.5,   -2.5,
      3,       -3,       6,     88,     -88,   104,       -104};
  return kEdges;
}

inline Attributes with(std::initializer_list<std::pair<const char*, double>> reals) {
  Attributes out;
  for (const auto& [name, value] : reals) out.set(name, value);
  return out;
}

inline std::int64_t count_of_edges() {
  return static_cast<std::int64_t>(edges().size());
}

inline Tensor edge_row() {
  Tensor out = f32({count_of_edges()});
  out.values = edges();
  return out;
}

// Two tensors that hold every pair: of the edges with all that `second` takes, where the others
// become 0.5.
inline std::vector<Tensor> edge_pairs(bool (*second)(double) = nullptr) {
  const std::int64_t n = count_of_edges();
  std::vector<Tensor> out{f32({n, n}), f32({n, n})};
  for (const double a : edges()) {
    for (const double b : edges()) {
      out[0].values.push_back(a);
      out[1].values.push_back(second == nullptr || b != b || second(b) ? b : 0.5);
    }
  }
  return out;
}

// Where the exponential of float has not gone under (vectorize.h): there dy would be multiplied by
// another 0.
inline bool above_underflow(double x) {
  return std::abs(x) < 87 || std::abs(x) > 1e3;
}
// What a tanh or a sigmoid can have given.
inline bool given_by_tanh(double y) {
  return std::abs(y) <= 1;
}
inline bool given_by_sigmoid(double y) {
  return y >= 0 && y <= 1;
}

inline bool (*second_of(std::string_view op))(double) {
  if (op == "tanh_grad") return given_by_tanh;
  if (op == "sigmoid_grad") return given_by_sigmoid;
  return op.ends_with("_grad") ? above_underflow : nullptr;
}

// Ordinary values, and about one in forty from these.
inline Tensor mixed(Tensor tensor, std::uint64_t seed,
                    const std::vector<double>& rare = {kNan, kInf, -kInf, 0.0, -0.0, kDenormal,
                                                       -1e-40}) {
  Random random(seed);
  for (std::int64_t i = 0; i < tensor.type.shape.elements(); ++i) {
    const double ordinary = tensor.low + (tensor.high - tensor.low) * random.uniform();
    const auto which =
        static_cast<std::size_t>(random.below(static_cast<std::int64_t>(rare.size())));
    tensor.values.push_back(random.chance(0.025) ? rare[which] : ordinary);
  }
  return tensor;
}

// For what meets zeros that are not there in theory (padding, what a mask hides): times infinity
// they would be NaN.
inline Tensor finite(const Tensor& tensor) {
  return mixed(tensor, 3, {0.0, -0.0, kDenormal, -1e-40});
}
// Where denormals are taken for zero, which times infinity is NaN.
inline Tensor normal(const Tensor& tensor) {
  return mixed(tensor, 3, {0.0, -0.0});
}

inline Tensor integers(const ir::Shape& shape, ir::DType dtype = ir::DType::kI64) {
  Tensor out{{dtype, shape, {}}};
  out.values = {
      0,           1, -1, 2, -7, 9.3e18, -9.3e18, 4611686018427387904.0, 2147483647, -2147483648.0,
      4294967296.0};
  return out;
}

// A weight in encoded form (codec/weights/encoded_matrix.h) with the attributes that say so. Chunks
// whose values have no code in the form stay raw, as in a file.
struct Encoded {
  Tensor bytes;
  Attributes attributes;
};
inline Encoded encoded(const Tensor& weight, ir::DType dtype, std::string_view form) {
  Encoded out{{{ir::DType::kU8, {}, {}}}, ops::encoded_attributes(weight.type.shape, dtype, form)};
  const ops::OpDefinition& reader = *ops::find_definition("decode_weight");
  const auto type = ops::encoded_type({reader.name, reader.attributes, out.attributes});
  const std::vector<float> floats(weight.values.begin(), weight.values.end());
  std::vector<std::byte> all(floats.size() * type->element_bytes());
  codec::from_floats(floats, type->kind, all);
  const codec::WeightCodec* codec = codec::find_weight_codec(form);
  std::vector<codec::EncodedChunk> chunks;
  std::vector<std::uint8_t> stored;
  for (std::size_t begin = 0; begin < all.size(); begin += codec::kChunkBytes) {
    const auto part =
        std::span(all).subspan(begin, std::min(codec::kChunkBytes, all.size() - begin));
    const std::size_t count = part.size() / type->element_bytes();
    const codec::ChunkShape shape{type->kind, type->element_bytes(), type->columns,
                                  begin / type->element_bytes()};
    std::vector<std::uint8_t> bytes(codec == nullptr ? 0 : codec->largest_bytes(count, shape));
    std::size_t used = 0;
    const bool has_code = codec != nullptr && codec->encode(part, shape, bytes, used);
    if (!has_code) {
      const auto* raw = reinterpret_cast<const std::uint8_t*>(part.data());
      bytes.assign(raw, raw + part.size());
      used = part.size();
    }
    const std::ptrdiff_t number = has_code ? codec - codec::weight_codecs().data() + 1 : 0;
    chunks.push_back({static_cast<std::uint8_t>(number), static_cast<std::uint32_t>(used)});
    stored.insert(stored.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(used));
  }
  std::vector<std::uint8_t> table(codec::encoded_table_bytes(chunks.size()));
  codec::write_encoded_table(chunks, table);
  out.bytes.values.assign(table.begin(), table.end());
  out.bytes.values.insert(out.bytes.values.end(), stored.begin(), stored.end());
  out.bytes.type.shape = {static_cast<std::int64_t>(out.bytes.values.size())};
  return out;
}

}  // namespace plimsoll::kernels::edge
