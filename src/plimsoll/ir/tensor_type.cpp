#include "plimsoll/ir/tensor_type.h"

#include "plimsoll/base/checked.h"

namespace plimsoll::ir {

std::optional<Bytes> checked_bytes(const TensorType& type) {
  const auto extents = padded(type.shape, type.layout);
  if (!extents) return std::nullopt;
  const auto elements = extents->checked_elements();
  if (!elements) return std::nullopt;
  const auto total = checked_multiply(*elements, bits(type.dtype));
  if (!total) return std::nullopt;
  return Bytes(ceil_div(*total, 8));
}

Bytes bytes_of(const TensorType& type) {
  const auto bytes = checked_bytes(type);
  PLIMSOLL_CHECK(bytes.has_value(), "size of {} overflows", to_string(type));
  return *bytes;
}

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}{}", name(type.dtype), to_string(type.shape), to_string(type.layout));
}

}  // namespace plimsoll::ir
