// What a tensor is, apart from its content: element type, extents, and how they lie in memory.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/base/units.h"
#include "plimsoll/ir/dtype.h"
#include "plimsoll/ir/layout.h"
#include "plimsoll/ir/shape.h"

namespace plimsoll::ir {

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape{};
  Layout layout{};

  bool operator==(const TensorType&) const = default;
};

// Size = product of the (padded) extents x bits / 8, rounded up to whole bytes. Nothing on
// overflow.
std::optional<Bytes> checked_bytes(const TensorType& type);
// The same for a type that passed verify(); overflow is our bug then.
Bytes bytes_of(const TensorType& type);

// "fp32[8,64,56,56]@0231"
std::string to_string(const TensorType& type);

}  // namespace plimsoll::ir
