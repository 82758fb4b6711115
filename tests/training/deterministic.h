// Numbers that C++ and Python agree on without a file: a hash of a name and an index. The other
// half is tools/references/deterministic.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/array.h"

namespace plimsoll::reference {

inline std::uint64_t fnv1a(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Uniform in [-1, 1).
inline std::vector<double> uniform(std::string_view name, std::int64_t count) {
  std::uint64_t state = fnv1a(name);
  std::vector<double> out(static_cast<std::size_t>(count));
  for (double& value : out) value = static_cast<double>(splitmix64(state) >> 11) * 0x1.0p-52 - 1.0;
  return out;
}

// Integers in [0, bound).
inline ops::Array integers(std::string_view name, const ir::Shape& shape, std::int64_t bound) {
  std::uint64_t state = fnv1a(name);
  std::vector<std::int64_t> out(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t& value : out)
    value = static_cast<std::int64_t>(splitmix64(state) % static_cast<std::uint64_t>(bound));
  return ops::Array::of_integers(shape, std::move(out));
}

inline ops::Array reals(std::string_view name, const ir::TensorType& type) {
  return ops::Array::of_reals(type.shape, uniform(name, type.shape.elements()), type.dtype);
}

// A weight that keeps activations sane: matrices by their fan, gains near 1, biases near 0.
inline ops::Array weight(std::string_view name, const ir::TensorType& type) {
  const std::int64_t count = type.shape.elements();
  std::vector<double> values = uniform(name, count);
  const double scale =
      type.shape.rank() >= 2
          ? std::sqrt(3.0 / static_cast<double>(std::max<std::int64_t>(1, count / type.shape[0])))
          : 0.1;
  const double centre = type.shape.rank() < 2 && name.ends_with(".weight") ? 1 : 0;
  for (double& value : values) value = centre + scale * value;
  return ops::Array::of_reals(type.shape, std::move(values), type.dtype);
}

}  // namespace plimsoll::reference
