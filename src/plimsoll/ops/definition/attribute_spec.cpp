#include "plimsoll/ops/definition/attribute_spec.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "plimsoll/base/check.h"

namespace plimsoll::ops {
namespace {

std::string_view kind_name(AttributeType type) {
  constexpr std::array<std::string_view, 4> kNames{"an integer", "a number", "a text",
                                                   "a list of integers"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view type_name(const ir::Attribute& value) {
  constexpr std::array<std::string_view, 5> kNames{"an integer", "a real", "a text",
                                                   "a list of integers", "a list of reals"};
  return kNames[value.index()];
}

bool is_a(const ir::Attribute& value, AttributeType type) {
  switch (type) {
    case AttributeType::kInteger:
      return std::holds_alternative<std::int64_t>(value);
    case AttributeType::kReal:
      return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
    case AttributeType::kText:
      return std::holds_alternative<std::string>(value);
    case AttributeType::kIntegers:
      return std::holds_alternative<ir::Ints>(value);
  }
  return false;
}

const AttributeSpec* find_spec(std::span<const AttributeSpec> specs, std::string_view name) {
  const auto place = std::ranges::find(specs, name, &AttributeSpec::name);
  return place == specs.end() ? nullptr : &*place;
}

std::string names_of(std::span<const AttributeSpec> specs) {
  std::vector<std::string_view> names;
  for (const AttributeSpec& spec : specs) names.push_back(spec.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Status check_attributes(std::span<const AttributeSpec> specs, const ir::Attributes& given) {
  for (const auto& [name, value] : given.entries()) {
    const AttributeSpec* spec = find_spec(specs, name);
    if (spec == nullptr) {
      return bad_input("has no attribute {}; it has {}", ir::quoted(name), names_of(specs));
    }
    if (!is_a(value, spec->type)) {
      return bad_input("{}: is {}, must be {}", name, type_name(value), kind_name(spec->type));
    }
    if (spec->choice.empty()) continue;
    const std::string& word = std::get<std::string>(value);
    if (std::ranges::find(spec->choice, word) == spec->choice.end()) {
      return bad_input("attribute '{}' is '{}', expects one of {}", name, word,
                       fmt::join(spec->choice, ", "));
    }
  }
  return {};
}

const AttributeSpec& AttributeReader::spec(std::string_view name, AttributeType type) const {
  const AttributeSpec* found = find_spec(specs_, name);
  PLIMSOLL_CHECK(found != nullptr, "{} reads attribute '{}', which its definition does not have",
                 op_, name);
  PLIMSOLL_CHECK(found->type == type ||
                     (type == AttributeType::kInteger && found->type == AttributeType::kReal),
                 "{} reads attribute '{}' as {}, its definition says {}", op_, name,
                 kind_name(type), kind_name(found->type));
  return *found;
}

const ir::Attribute* AttributeReader::find(std::string_view name) const {
  PLIMSOLL_CHECK(declares(name), "{} reads attribute '{}', which its definition does not have", op_,
                 name);
  return given_->find(name);
}

bool AttributeReader::declares(std::string_view name) const {
  return find_spec(specs_, name) != nullptr;
}

const ir::Attribute& AttributeReader::value(std::string_view name, AttributeType type) const {
  const AttributeSpec& declared = spec(name, type);
  const ir::Attribute* found = given_->find(name);
  PLIMSOLL_CHECK(found != nullptr || declared.otherwise,
                 "{} reads attribute '{}', which is absent and has no default", op_, name);
  return found != nullptr ? *found : *declared.otherwise;
}

std::int64_t AttributeReader::integer(std::string_view name) const {
  return std::get<std::int64_t>(value(name, AttributeType::kInteger));
}

double AttributeReader::real(std::string_view name) const {
  const ir::Attribute& found = value(name, AttributeType::kReal);
  const auto* whole = std::get_if<std::int64_t>(&found);
  return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(found);
}

std::string AttributeReader::text(std::string_view name) const {
  return std::get<std::string>(value(name, AttributeType::kText));
}

ir::Ints AttributeReader::integers(std::string_view name) const {
  return std::get<ir::Ints>(value(name, AttributeType::kIntegers));
}

std::int64_t AttributeReader::integer(std::string_view name, std::int64_t derived) const {
  spec(name, AttributeType::kInteger);
  return given_->integer(name, derived);
}

double AttributeReader::real(std::string_view name, double derived) const {
  spec(name, AttributeType::kReal);
  return given_->real(name, derived);
}

ir::Ints AttributeReader::integers(std::string_view name, const ir::Ints& derived) const {
  spec(name, AttributeType::kIntegers);
  return given_->integers(name, derived);
}

}  // namespace plimsoll::ops
