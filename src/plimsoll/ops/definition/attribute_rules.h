// Reading attributes that may come from a hostile file.
//
// Attributes::integer and its friends answer with a default when a name is absent or has another
// type: right for kernels and gradients, which see only what the type rule let through. A type rule
// itself uses these: they refuse what is absent, of the wrong type or of the wrong count, and the
// message names the attribute and both values.
//
//   PLIMSOLL_TRY(const ir::Shape shape, shape_attribute(call.attributes(), "shape"));
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/attributes.h"
#include "plimsoll/ir/dtype.h"
#include "plimsoll/ir/shape.h"

namespace plimsoll::ops {

// Must be there and be a list of integers.
Result<ir::Ints> required_integers(const ir::Attributes& attributes, std::string_view name);
// The same with exactly `count` of them.
Result<ir::Ints> required_integers(const ir::Attributes& attributes, std::string_view name,
                                   int count);
// Must be there and be an integer.
Result<std::int64_t> required_integer(const ir::Attributes& attributes, std::string_view name);
// A list of extents that makes a shape: not negative, not too many, no overflow.
Result<ir::Shape> shape_attribute(const ir::Attributes& attributes, std::string_view name);
// The dtype an attribute names.
Result<ir::DType> dtype_attribute(const ir::Attributes& attributes, std::string_view name);
// A word of a fixed choice; the first one is the default.
Result<std::string> choice_attribute(const ir::Attributes& attributes, std::string_view name,
                                     std::initializer_list<std::string_view> choice);
// A finite number, or the default when absent.
Result<double> finite_attribute(const ir::Attributes& attributes, std::string_view name,
                                double otherwise);
// A list of axes in [-rank, rank), each at most once, sorted; all of them when absent.
Result<std::vector<int>> axes_attribute(const ir::Attributes& attributes, std::string_view name,
                                        int rank);

}  // namespace plimsoll::ops
