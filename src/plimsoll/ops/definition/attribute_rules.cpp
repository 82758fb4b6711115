#include "plimsoll/ops/definition/attribute_rules.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plimsoll/ops/definition/rules.h"

namespace plimsoll::ops {

Result<ir::Ints> required_integers(const AttributeReader& attributes, std::string_view name) {
  const ir::Attribute* found = attributes.find(name);
  if (found == nullptr) return bad_input("attribute '{}' is missing", name);
  const auto* values = std::get_if<ir::Ints>(found);
  if (values == nullptr) return bad_input("attribute '{}' is no list of integers", name);
  return *values;
}

Result<ir::Ints> required_integers(const AttributeReader& attributes, std::string_view name,
                                   int count) {
  PLIMSOLL_TRY(ir::Ints values, required_integers(attributes, name));
  if (static_cast<std::int64_t>(values.size()) != count) {
    return bad_input("attribute '{}' has {} entries, expects {}", name, values.size(), count);
  }
  return values;
}

Result<std::int64_t> required_integer(const AttributeReader& attributes, std::string_view name) {
  const ir::Attribute* found = attributes.find(name);
  if (found == nullptr) return bad_input("attribute '{}' is missing", name);
  const auto* value = std::get_if<std::int64_t>(found);
  if (value == nullptr) return bad_input("attribute '{}' is no integer", name);
  return *value;
}

Result<ir::Shape> shape_attribute(const AttributeReader& attributes, std::string_view name) {
  PLIMSOLL_TRY(const ir::Ints dims, required_integers(attributes, name));
  return ir::Shape::make(dims);
}

Result<ir::DType> dtype_attribute(const AttributeReader& attributes, std::string_view name) {
  const ir::Attribute* found = attributes.find(name);
  const std::string text = found != nullptr ? std::get<std::string>(*found) : "";
  const auto dtype = ir::parse_dtype(text);
  if (!dtype) return bad_input("attribute '{}' is '{}', expects a dtype such as fp32", name, text);
  return *dtype;
}

Result<double> finite_attribute(const AttributeReader& attributes, std::string_view name) {
  const double value = attributes.real(name);
  if (!std::isfinite(value)) return bad_input("attribute '{}' is {}, not finite", name, value);
  return value;
}

Result<std::vector<int>> axes_attribute(const AttributeReader& attributes, std::string_view name,
                                        int rank) {
  std::vector<int> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (!attributes.has(name)) return axes;
  PLIMSOLL_TRY(const ir::Ints given, required_integers(attributes, name));
  if (static_cast<std::int64_t>(given.size()) > rank) {
    return bad_input("attribute '{}' has {} entries for a rank of {}", name, given.size(), rank);
  }
  axes.clear();
  for (const std::int64_t axis : given) {
    PLIMSOLL_TRY(const int normal, normal_axis(axis, rank));
    axes.push_back(normal);
  }
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end()) return bad_input("attribute '{}' names axis {} twice", name, *twice);
  return axes;
}

}  // namespace plimsoll::ops
