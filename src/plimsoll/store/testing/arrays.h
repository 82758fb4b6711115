// Arrays and bytes for tests of this module.
#pragma once

#include <cstring>
#include <string_view>

#include "plimsoll/store/npy.h"

namespace plimsoll::store {

inline NamedTensor floats(std::string name, const ir::Shape& shape, std::vector<float> values) {
  NamedTensor out{std::move(name), {ir::DType::kF32, shape, {}}, {}};
  out.bytes.resize(values.size() * 4);
  if (!values.empty()) std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> out(text.size());
  if (!out.empty()) std::memcpy(out.data(), text.data(), text.size());
  return out;
}

}  // namespace plimsoll::store
