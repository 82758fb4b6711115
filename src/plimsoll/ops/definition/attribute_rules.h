// Reading attributes that may come from a hostile file.
//
// AttributeReader::integer and its friends end the program when a required attribute is absent:
// right for kernels and gradients, which see only what the type rule let through. A type rule
// itself uses these: they refuse what is absent, of the wrong count or not finite, and the message
// names the attribute and both values.
//
//   PLIMSOLL_TRY(const ir::Shape shape, shape_attribute(call.attributes(), "shape"));
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/dtype.h"
#include "plimsoll/ir/shape.h"
#include "plimsoll/ops/definition/attribute_spec.h"

namespace plimsoll::ops {

// Must be there and be a list of integers.
Result<ir::Ints> required_integers(const AttributeReader& attributes, std::string_view name);
// The same with exactly `count` of them.
Result<ir::Ints> required_integers(const AttributeReader& attributes, std::string_view name,
                                   int count);
// Must be there and be an integer.
Result<std::int64_t> required_integer(const AttributeReader& attributes, std::string_view name);
// A list of extents that makes a shape: not negative, not too many, no overflow.
Result<ir::Shape> shape_attribute(const AttributeReader& attributes, std::string_view name);
// The dtype an attribute names.
Result<ir::DType> dtype_attribute(const AttributeReader& attributes, std::string_view name);
// A finite number.
Result<double> finite_attribute(const AttributeReader& attributes, std::string_view name);
// A list of axes in [-rank, rank), each at most once, sorted; all of them when absent.
Result<std::vector<int>> axes_attribute(const AttributeReader& attributes, std::string_view name,
                                        int rank);

}  // namespace plimsoll::ops
