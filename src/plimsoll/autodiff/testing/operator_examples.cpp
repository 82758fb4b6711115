#include "plimsoll/autodiff/testing/operator_examples.h"

#include "plimsoll/base/check.h"
#include "plimsoll/codec/weights/encoded_matrix.h"
#include "plimsoll/codec/weights/weight_codecs.h"
#include "plimsoll/ops/products/encoded_weight.h"

#include <iterator>

#include "plimsoll/base/random.h"

namespace plimsoll::autodiff {

ops::Array example_reals(const ir::Shape& shape, double low, double high, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (double& value : values) value = low + (high - low) * random.uniform();
  return ops::Array::of_reals(shape, std::move(values));
}

ops::Array example_signed(const ir::Shape& shape, double low, double high, std::uint64_t seed) {
  ops::Array out = example_reals(shape, low, high, seed);
  Random random(~seed);
  for (double& value : out.reals) value = random.chance(0.5) ? value : -value;
  return out;
}

ops::Array example_integers(const ir::Shape& shape, std::vector<std::int64_t> values,
                            ir::DType dtype) {
  return ops::Array::of_integers(shape, std::move(values), dtype);
}

ops::Array example_encoded(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  const ops::Array values = example_signed({rows, columns}, 0.5, 2, seed);
  const std::vector<float> floats(values.reals.begin(), values.reals.end());
  const codec::WeightCodec& codec = *codec::find_weight_codec("q8_0");
  const codec::ChunkShape shape{codec::WeightKind::kF32, 4, static_cast<std::size_t>(columns), 0};
  std::vector<std::uint8_t> stored(codec.largest_bytes(floats.size(), shape));
  std::size_t used = 0;
  PLIMSOLL_CHECK(codec.encode(std::as_bytes(std::span(floats)), shape, stored, used), "q8_0");
  const auto form = static_cast<std::uint8_t>(&codec - codec::weight_codecs().data() + 1);
  const codec::EncodedChunk chunk{form, static_cast<std::uint32_t>(used)};
  std::vector<std::uint8_t> bytes(codec::encoded_table_bytes(1));
  codec::write_encoded_table(std::span(&chunk, 1), bytes);
  bytes.insert(bytes.end(), stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(used));
  return example_integers({static_cast<std::int64_t>(bytes.size())}, {bytes.begin(), bytes.end()},
                          ir::DType::kU8);
}
ir::Attributes example_encoded_attributes(std::int64_t rows, std::int64_t columns) {
  return ops::encoded_attributes({rows, columns}, ir::DType::kF32, "q8_0");
}

std::vector<OperatorExample> operator_examples() {
  std::vector<OperatorExample> out;
  for (const auto family : {
           elementwise_examples,
           shaping_examples,
           indexing_examples,
           reduction_examples,
           nn_examples,
       }) {
    auto examples = family();
    std::move(examples.begin(), examples.end(), std::back_inserter(out));
  }
  return out;
}

}  // namespace plimsoll::autodiff
