// The attributes an operator has: their names, their types, and what an absent one means. They
// stand on its definition and nowhere else: `ops::infer` refuses any other name or type, and rules,
// kernels and gradients read a default from here instead of writing it down again.
//
//   .attributes = {attribute::integer("axis", -1), attribute::real("epsilon", 1e-5),
//                  attribute::choice("mode", {"constant", "edge"})}
//
//   relu {alpha=3}     relu: has no attribute "alpha"; it has none
//   softmax {axsi=1}   softmax: has no attribute "axsi"; it has axis
//   softmax {axis="1"} softmax: axis: is a text, must be an integer
//
// An attribute without a default is required, or absent means something that depends on the inputs
// (all axes; one over the root of the width): the operator's rules say which.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/attributes.h"

namespace plimsoll::ops {

enum class AttributeType { kInteger, kReal, kText, kIntegers };  // an integer serves as a real

struct AttributeSpec {
  std::string_view name;
  AttributeType type;
  std::optional<ir::Attribute> otherwise;  // what an absent one means
  std::vector<std::string_view> choice;    // of a text: the words it may be; empty: any
};

namespace attribute {

inline AttributeSpec integer(std::string_view name, std::optional<std::int64_t> otherwise = {}) {
  return {name, AttributeType::kInteger, otherwise, {}};
}
inline AttributeSpec real(std::string_view name, std::optional<double> otherwise = {}) {
  return {name, AttributeType::kReal, otherwise, {}};
}
inline AttributeSpec text(std::string_view name) {
  return {name, AttributeType::kText, {}, {}};
}
inline AttributeSpec integers(std::string_view name) {
  return {name, AttributeType::kIntegers, {}, {}};
}
// One of these words; the first one when absent.
inline AttributeSpec choice(std::string_view name, std::vector<std::string_view> words) {
  return {name, AttributeType::kText, std::string(words.front()), std::move(words)};
}

}  // namespace attribute

// Every attribute given is one of these and of its type.
Status check_attributes(std::span<const AttributeSpec> specs, const ir::Attributes& given);

// The attributes of one use of an operator, with the defaults of its definition. To read what the
// definition does not have, or a default that is not there, is a bug in a rule and ends the
// program. Two pointers; refers to both.
class AttributeReader {
 public:
  AttributeReader(std::string_view op, std::span<const AttributeSpec> specs,
                  const ir::Attributes& given)
      : op_(op), specs_(specs), given_(&given) {}

  // The operator's name.
  std::string_view op() const { return op_; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Null when absent.
  const ir::Attribute* find(std::string_view name) const;

  // The value given, or the definition's default.
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::string text(std::string_view name) const;
  ir::Ints integers(std::string_view name) const;
  // The value given, or what the caller derives from the inputs.
  std::int64_t integer(std::string_view name, std::int64_t derived) const;
  double real(std::string_view name, double derived) const;
  ir::Ints integers(std::string_view name, const ir::Ints& derived) const;

  // Whether the operator has such an attribute: for code that several operators share.
  bool declares(std::string_view name) const;
  std::span<const AttributeSpec> specs() const { return specs_; }
  // Only what was given: to hand on to another node.
  const ir::Attributes& given() const { return *given_; }

 private:
  const AttributeSpec& spec(std::string_view name, AttributeType type) const;
  const ir::Attribute& value(std::string_view name, AttributeType type) const;

  std::string_view op_;
  std::span<const AttributeSpec> specs_;
  const ir::Attributes* given_;
};

}  // namespace plimsoll::ops
