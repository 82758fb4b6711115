#include "plimsoll/autodiff/testing/operator_examples.h"

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
